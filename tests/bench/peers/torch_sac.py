"""SAC of a population in PyTorch: stacked nets, autograd and fused Adam; on a GPU one CUDA graph, which is replayed. A peer that
deploy/dev/gpu_trial measures.

Does the same work as jax_sac.py: observation 16, action 3, two hidden layers of WIDTH, batch 64, a policy step in every update. The batch
lies on the device and is the same in all SCAN updates of a call.
"""

import math

import torch

OBS, ACTION, WIDTH, BATCH, SCAN = 16, 3, 128, 64, 16
RATE, TAU, DISCOUNT, TARGET_ENTROPY = 5e-4, 0.001, 0.99, -3.0
EAGER_UPDATES = 3  # before a graph is recorded: libraries and optimisers initialise themselves


def described():
    """(name and version, device)"""
    return (f"torch {torch.__version__}, CUDA graph", "gpu") if torch.cuda.is_available() else (f"torch {torch.__version__}, eager", "cpu")


def net(members, sizes, device):
    """Weights [members, in, out] and biases [members, 1, out] of all layers."""
    parameters = []
    for rows, columns in zip(sizes, sizes[1:]):
        parameters.append(torch.empty(members, rows, columns, device=device).uniform_(-1, 1).div_(rows**0.5).requires_grad_())
        parameters.append(torch.zeros(members, 1, columns, device=device).requires_grad_())
    return parameters


def forward(parameters, value):
    for i in range(0, len(parameters), 2):
        value = torch.baddbmm(parameters[i + 1], value, parameters[i])
        if i + 2 < len(parameters):
            value = torch.relu(value)
    return value


def act(policy, observation, noise):
    mean, log_std = forward(policy[0], observation), forward(policy[1], observation).clamp(-20, 2)
    action = torch.tanh(mean + log_std.exp() * noise)
    log_pi = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi) - torch.log(1 - action.square() + 1e-6)
    return action, log_pi.sum(2, keepdim=True)


def smaller_value(critics, observation, action):
    both = torch.cat([observation, action], 2)
    return torch.minimum(forward(critics[0], both), forward(critics[1], both))


def step(optimizer, loss):
    parameters = optimizer.param_groups[0]["params"]
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
        parameter.grad = gradient
    optimizer.step()


class Population:
    def __init__(self, members, device):
        self.policy = [net(members, (OBS, WIDTH, WIDTH, ACTION), device) for _ in range(2)]
        self.critics = [net(members, (OBS + ACTION, WIDTH, WIDTH, 1), device) for _ in range(2)]
        self.log_alpha = torch.zeros(members, 1, 1, device=device, requires_grad=True)
        self.learned = [parameter for one in self.critics for parameter in one]
        self.targets = [parameter.detach().clone() for parameter in self.learned]

        def adam(parameters):
            return torch.optim.Adam(parameters, lr=RATE, fused=True, capturable=device == "cuda")

        self.policy_adam = adam([parameter for one in self.policy for parameter in one])
        self.alpha_adam, self.critic_adam = adam([self.log_alpha]), adam(self.learned)
        self.observation, self.next_observation = (torch.randn(members, BATCH, OBS, device=device) for _ in range(2))
        self.action, self.noise, self.next_noise = (torch.randn(members, BATCH, ACTION, device=device) for _ in range(3))
        self.reward = torch.ones(members, BATCH, 1, device=device)

    def update(self):
        """Losses are sums over the members, so that each member has its own gradient."""
        action, log_pi = act(self.policy, self.observation, self.noise)
        value = smaller_value(self.critics, self.observation, action)
        step(self.policy_adam, (self.log_alpha.detach().exp() * log_pi - value).mean(1).sum())
        excess = log_pi.detach().mean(1, keepdim=True) + TARGET_ENTROPY
        step(self.alpha_adam, -(self.log_alpha.exp() * excess).sum())
        with torch.no_grad():
            action, log_pi = act(self.policy, self.next_observation, self.next_noise)
            half = len(self.targets) // 2
            value = smaller_value((self.targets[:half], self.targets[half:]), self.next_observation, action)
            wanted = self.reward + DISCOUNT * (value - self.log_alpha.exp() * log_pi)
        both = torch.cat([self.observation, self.action], 2)
        step(self.critic_adam, sum((forward(one, both) - wanted).square().mean(1).sum() for one in self.critics))
        with torch.no_grad():
            torch._foreach_lerp_(self.targets, self.learned, TAU)


def population(members):
    """Returns a function that does SCAN updates of every member and waits for them."""
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
        held = Population(members, "cpu")
        return lambda: [held.update() for _ in range(SCAN)]
    held, side = Population(members, "cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(EAGER_UPDATES):
            held.update()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held.update()

    def call():
        for _ in range(SCAN):
            graph.replay()
        torch.cuda.synchronize()

    call.held = held  # its tensors are the graph's
    return call
# SPDX-License-Identifier: Apache-2.0
