"""Its trainer DeepAdversarialMetricLearning: one pass of six losses, four networks with an optimizer each.

The generator's losses also reach trunk and embedder, as the trainer has it: there is no other pass.
"""
# package: pytorch-metric-learning==2.9.0
# expects: nothing
# trains: 4

import torch
from pytorch_metric_learning import losses, trainers
from torch import nn

models = {
    "trunk": nn.Sequential(nn.Linear(10, 16), nn.ReLU()),
    "embedder": nn.Linear(16, 8),
    "classifier": nn.Linear(8, 4),
    "generator": nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 16)),
}
optimizers = {f"{name}_optimizer": torch.optim.Adam(model.parameters(), lr=1e-4) for name, model in models.items()}
loss_funcs = {
    "metric_loss": losses.TripletMarginLoss(margin=0.2),
    "classifier_loss": nn.CrossEntropyLoss(),
    "synth_loss": losses.TripletMarginLoss(margin=0.2),
    "g_adv_loss": losses.TripletMarginLoss(margin=0.2),
}
names = ["metric_loss", "classifier_loss", "synth_loss", "g_adv_loss", "g_hard_loss", "g_reg_loss"]
trainer = trainers.DeepAdversarialMetricLearning(
    models=models,
    optimizers=optimizers,
    batch_size=16,
    loss_funcs=loss_funcs,
    dataset=torch.utils.data.TensorDataset(torch.randn(64, 10), torch.randint(0, 4, (64,))),
    mining_funcs={},
    loss_weights=dict.fromkeys(names, 1),
    dataloader_num_workers=0,
    g_triplets_per_anchor=10,
)
trainer.train(num_epochs=2)
