/* A trained policy on a robot: takes an observation and returns a safe action. C99; needs only libdatacom_policy.so and
 * a file that `datacom export RUN_DIR --member M --out FILE` wrote.
 *
 *   datacom_policy* policy;
 *   char why[256];
 *   if (datacom_policy_load("arm.policy", &policy, why, sizeof why) != DATACOM_POLICY_OK) { fprintf(stderr, ... why); }
 *   in.observation = ...;                            every control_period seconds
 *   datacom_policy_act(policy, &in, action, NULL);
 *   datacom_policy_free(policy);
 *
 * On an x86-64-v3 processor (AVX2, FMA), which every role needs, the action equals, bit for bit, the one that an actor
 * of the training run would execute: same nets, same filter, same rounding. On a 64-bit ARM processor it may differ by
 * rounding (docs/platforms.md).
 *
 * Time: the library has no clock. An action is a function of the observation alone (of the plan so far, too, for the
 * rule planner), so a late call gives the action for the state that it is given. Whether that state is too old is for
 * the robot to judge, against control_period. A number that is not finite is refused and leaves the action unchanged.
 *
 * Threads: policies are independent of each other; use one policy from one thread at a time. datacom_policy_act returns
 * DATACOM_POLICY_BUSY, and changes nothing, while another thread is in it with the same policy; the other functions do
 * not notice. It allocates no memory, takes no lock and never blocks; loading reads the file and allocates. No function
 * throws. */
#ifndef DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_
#define DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct datacom_policy datacom_policy;

/* Return values; the numbers will not change. */
enum {
  DATACOM_POLICY_OK = 0,
  DATACOM_POLICY_UNREADABLE = 1,  /* the file does not exist or cannot be read */
  DATACOM_POLICY_DAMAGED = 2,     /* truncated, changed, no policy file, or a weight that is not finite */
  DATACOM_POLICY_UNSUPPORTED = 3, /* file format, task, acting rule or processor unknown to this library */
  DATACOM_POLICY_BAD_INPUT = 4,   /* a null pointer, or a number that is not finite */
  DATACOM_POLICY_FAILED = 5,      /* out of memory, or the policy computed an action that is not finite */
  DATACOM_POLICY_NO_MODEL = 6,    /* G of the observation is 0: its model columns are missing (since 1.1) */
  DATACOM_POLICY_BUSY = 7         /* another thread is acting with this policy (since 1.1) */
};

typedef struct datacom_policy_info {
  const char* task;       /* defines the meaning of observation and action */
  const char* experiment; /* that trained it */
  const char* algorithm;
  const char* acting_rule; /* the filter */
  const char* build;       /* version and revision of the program that exported it */
  uint32_t member, epoch;
  uint64_t update; /* gradient updates of the policy */
  int observation_dim, action_dim, noise_dim;
  double control_period;     /* seconds from one action to the next */
  const double* action_low;  /* [action_dim] bounds to which the task's environment clips an action. This library */
  const double* action_high; /* returns the filter's output unclipped: the robot must clip it, too */

  /* Since 1.1. The policy's nets see the first seen_dim numbers of an observation. The others, up to observation_dim,
   * are what the safety filter reads of the robot's model: state, f and G, of the present moment. The robot must fill
   * them in, or the filter filters nothing. A policy whose rule reads no model has none: seen_dim = observation_dim. */
  int seen_dim;
  const char* const* observation_names; /* [observation_dim] what each number is, "" where the task does not say */
  const char* const* action_names;      /* [action_dim] */
  int filters;                          /* whether datacom_policy_filter can be used */
} datacom_policy_info;

typedef struct datacom_policy_input {
  const double* observation; /* [observation_dim], units of the task; rounded to float32 once */
  const float* noise;        /* [noise_dim] standard normal numbers, as in training and evaluation;
                                NULL: zeros, which give the deterministic action */
  double previous_cost;      /* constraint cost of the present state; 0 at the start of an episode. Only the rule
                                safe_layer uses it */
} datacom_policy_input;

typedef struct datacom_policy_judgement {
  double cvar;         /* conditional value at risk of the future cost; NaN for rules without a learned constraint */
  double constraint;   /* cvar - delta, unsafe above 0; NaN for rules without a learned constraint */
  double intervention; /* norm of the filter's change to the action; 0 for rules without a filter */
} datacom_policy_judgement;

/* On success the caller owns *policy and frees it. Otherwise *policy is NULL, and `message` [message_bytes], unless
 * NULL, holds a sentence that names the file and the error, cut to fit and always terminated by 0. */
int datacom_policy_load(const char* path, datacom_policy** policy, char* message, size_t message_bytes);
void datacom_policy_free(datacom_policy* policy); /* does nothing for NULL */

/* The result is valid as long as the policy. */
const datacom_policy_info* datacom_policy_describe(const datacom_policy* policy);

/* Forgets the episode so far. Call it where an episode begins; loading does it, too. Only the rule planner keeps
 * something from one action to the next: its plan. NULL does nothing. */
void datacom_policy_begin(datacom_policy* policy);

/* Whether the filter uses its shield, the part that was learned. Loading uses it. Without it an action is only limited
 * by what is known of the task, for comparison. DATACOM_POLICY_UNSUPPORTED, and nothing changes, for a rule that learns
 * no filter. Since 1.1. */
int datacom_policy_use_shield(datacom_policy* policy, int use);

/* action: [action_dim] output, float32 values; unchanged when the result is not DATACOM_POLICY_OK: the robot must then
 * act without the policy. judgement: output, may be NULL. */
int datacom_policy_act(datacom_policy* policy, const datacom_policy_input* input, double* action,
                       datacom_policy_judgement* judgement);

/* Filters an action of somebody else's policy: `proposed` [action_dim], in units of the task, takes the place of this
 * policy's own, limited to the action's bounds, as the task's environment would. input->noise is not read. Otherwise as
 * datacom_policy_act; judgement->intervention is the norm of the change to the limited `proposed`.
 * DATACOM_POLICY_UNSUPPORTED for a rule without a filter. Since 1.1. */
int datacom_policy_filter(datacom_policy* policy, const datacom_policy_input* input, const double* proposed,
                          double* action, datacom_policy_judgement* judgement);

/* Why the last action of this policy, DATACOM_POLICY_BUSY aside, did not return DATACOM_POLICY_OK, as a
 * sentence; "" if it did. Valid until its next call. Since 1.1. */
const char* datacom_policy_why(const datacom_policy* policy);

#ifdef __cplusplus
}
#endif

#endif /* DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_ */
/* SPDX-License-Identifier: Apache-2.0 */
