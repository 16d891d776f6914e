"""SAC on Pendulum: two critics, a target, an actor, and a learned weight of the entropy. The actor's pass fills the
critics' gradients, which they clear."""
# package: stable-baselines3==2.9.2
# expects: waste wasted at "actor_loss.backward()"

from stable_baselines3 import SAC

model = SAC("MlpPolicy", "Pendulum-v1", learning_starts=20, batch_size=16, policy_kwargs={"net_arch": [16, 16]})
model.learn(total_timesteps=40)
