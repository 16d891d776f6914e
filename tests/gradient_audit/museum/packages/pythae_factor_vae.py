"""The README's pipeline with a FactorVAE: D's loss also moves the encoder, whose optimizer steps after it."""
# package: pythae==0.1.2
# expects: error mixed at "discriminator_loss.backward()"
# expects: waste wasted at "autoencoder_loss.backward(retain_graph=True)"
# expects: waste graph at "model_output = self.model("
# bug: D's loss on codes that are not detached also moves the encoder

import tempfile

import torch
from pythae.models import FactorVAE, FactorVAEConfig
from pythae.pipelines import TrainingPipeline
from pythae.trainers import AdversarialTrainerConfig

config = AdversarialTrainerConfig(output_dir=tempfile.mkdtemp(), num_epochs=6, per_device_train_batch_size=8)
model = FactorVAE(FactorVAEConfig(input_dim=(1, 8, 8), latent_dim=4))
TrainingPipeline(training_config=config, model=model)(train_data=torch.rand(32, 1, 8, 8))
