"""The README's example: PPO on CartPole."""
# package: stable-baselines3==2.9.2
# expects: nothing

from stable_baselines3 import PPO

model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=16, device="cpu")
model.learn(total_timesteps=256)
