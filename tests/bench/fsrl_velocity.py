"""Trains FSRL's PPO-Lagrangian on SafetyHalfCheetahVelocity-v1 and prints return, cost and time for each of its epochs.

    fsrl_velocity.py [SEED [EPOCHS]]          # 0 and 50; an epoch has 20,000 steps

Python 3.10 with `pip install fast-safe-rl safety-gymnasium==1.0.0`. The settings are FSRL's own for MuJoCo tasks
(fsrl/config/ppol_cfg.py, MujocoBaseCfg, cost limit 25), but for two threads and environments that take turns in one process.
"""
import sys
import time

import gymnasium
import safety_gymnasium  # noqa: F401  registers the environments
from fsrl.agent import PPOLagAgent
from fsrl.config.ppol_cfg import MujocoBaseCfg
from fsrl.utils import BaseLogger
from tianshou.env import DummyVectorEnv

TASK = "SafetyHalfCheetahVelocityGymnasium-v1"


class Printer(BaseLogger):
    """Prints the means of an epoch."""

    begun = time.monotonic()

    def write(self, step, display=False, display_keys=None):
        means = {key: self.get_mean(key) for key in ("train/reward", "train/cost", "test/reward", "test/cost") if key in self.logger_keys}
        print(f"{time.monotonic() - self.begun:.0f} s, {step} steps:", *(f"{key} {value:.1f}" for key, value in means.items()), flush=True)
        return super().write(step, display, display_keys)


def main():
    seed, epochs = (int(word) for word in [*sys.argv[1:], *["0", "50"][len(sys.argv) - 1:]])
    settings = MujocoBaseCfg()
    agent = PPOLagAgent(
        gymnasium.make(TASK), Printer(), cost_limit=settings.cost_limit, device="cpu", thread=2, seed=seed, lr=settings.lr,
        hidden_sizes=settings.hidden_sizes, unbounded=settings.unbounded, last_layer_scale=settings.last_layer_scale,
        target_kl=settings.target_kl, vf_coef=settings.vf_coef, max_grad_norm=settings.max_grad_norm, gae_lambda=settings.gae_lambda,
        eps_clip=settings.eps_clip, dual_clip=settings.dual_clip, value_clip=settings.value_clip, advantage_normalization=settings.norm_adv,
        recompute_advantage=settings.recompute_adv, use_lagrangian=settings.use_lagrangian, lagrangian_pid=settings.lagrangian_pid,
        rescaling=settings.rescaling, gamma=settings.gamma, max_batchsize=settings.max_batchsize, reward_normalization=settings.rew_norm,
        deterministic_eval=settings.deterministic_eval, action_scaling=settings.action_scaling,
        action_bound_method=settings.action_bound_method)
    train, test = (DummyVectorEnv([lambda: gymnasium.make(TASK) for _ in range(number)])
                   for number in (settings.training_num, settings.testing_num))
    agent.learn(train, test, epoch=epochs, episode_per_collect=settings.episode_per_collect, step_per_epoch=settings.step_per_epoch,
                repeat_per_collect=settings.repeat_per_collect, buffer_size=settings.buffer_size, testing_num=settings.testing_num,
                batch_size=settings.batch_size, reward_threshold=settings.reward_threshold, save_interval=settings.save_interval,
                resume=False, save_ckpt=False, verbose=False)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
