"""The README's pipeline with a VAEGAN: the decoder steps on its loss and on D's, the encoder on its and the decoder's.

Each network's gradients are cleared before its own `backward()`, and all step after the last one.
"""
# package: pythae==0.1.2
# expects: error mixed at "discriminator_loss.backward()"
# expects: error mixed at "decoder_loss.backward(retain_graph=True)"
# expects: waste wasted at "encoder_loss.backward(retain_graph=True)"
# expects: waste wasted at "decoder_loss.backward(retain_graph=True)"
# bug: D's loss on fakes that are not detached also moves the decoder

import tempfile

import torch
from pythae.models import VAEGAN, VAEGANConfig
from pythae.pipelines import TrainingPipeline
from pythae.trainers import CoupledOptimizerAdversarialTrainerConfig

config = CoupledOptimizerAdversarialTrainerConfig(
    output_dir=tempfile.mkdtemp(), num_epochs=6, per_device_train_batch_size=8
)
model = VAEGAN(VAEGANConfig(input_dim=(1, 8, 8), latent_dim=4, margin=10.0))
TrainingPipeline(training_config=config, model=model)(train_data=torch.rand(32, 1, 8, 8))
