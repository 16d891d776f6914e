"""The README's training pipeline of a VAE."""
# package: pythae==0.1.2
# expects: nothing

import tempfile

import torch
from pythae.models import VAE, VAEConfig
from pythae.pipelines import TrainingPipeline
from pythae.trainers import BaseTrainerConfig

config = BaseTrainerConfig(
    output_dir=tempfile.mkdtemp(),
    num_epochs=6,
    learning_rate=1e-3,
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    optimizer_cls="AdamW",
    optimizer_params={"weight_decay": 0.05, "betas": (0.91, 0.995)},
    scheduler_cls="ReduceLROnPlateau",
    scheduler_params={"patience": 5, "factor": 0.5},
)
pipeline = TrainingPipeline(training_config=config, model=VAE(VAEConfig(input_dim=(1, 8, 8), latent_dim=4)))
pipeline(train_data=torch.rand(32, 1, 8, 8), eval_data=torch.rand(16, 1, 8, 8))
