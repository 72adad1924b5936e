/* A trained policy on a robot: an observation in, a safe action out. C99; needs nothing of datacom but
 * libdatacom_policy.so and a file that `datacom export RUN_DIR --member M --out FILE` wrote.
 *
 *   datacom_policy* policy;
 *   char why[256];
 *   if (datacom_policy_load("arm.policy", &policy, why, sizeof why) != DATACOM_POLICY_OK) { fprintf(stderr, ... why); }
 *   in.observation = ...;                            every control_period seconds
 *   datacom_policy_act(policy, &in, action, NULL);
 *   datacom_policy_free(policy);
 *
 * An action is the very one that an actor of the training run would have its environment execute, bit for bit: same
 * nets, same filter, same rounding. The build needs an x86-64-v3 processor (AVX2, FMA), as every role does.
 *
 * Threads: policies are independent of each other; one policy is used by one thread at a time. datacom_policy_act
 * allocates nothing, takes no lock and blocks nowhere; loading reads the file and allocates. No exception leaves. */
#ifndef DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_
#define DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct datacom_policy datacom_policy;

/* What functions return; the numbers stay. */
enum {
  DATACOM_POLICY_OK = 0,
  DATACOM_POLICY_UNREADABLE = 1,  /* the file is not there or cannot be read */
  DATACOM_POLICY_DAMAGED = 2,     /* cut short, changed, or no policy file */
  DATACOM_POLICY_UNSUPPORTED = 3, /* of another form, task or acting rule than this library knows, or its processor */
  DATACOM_POLICY_BAD_INPUT = 4,   /* a null pointer, or a number that is not finite */
  DATACOM_POLICY_FAILED = 5       /* out of memory; or the policy's own action is not finite */
};

typedef struct datacom_policy_info {
  const char* task;       /* name: says what observation and action mean */
  const char* experiment; /* that it was trained by */
  const char* algorithm;
  const char* acting_rule; /* the filter */
  const char* build;       /* version and revision that exported it */
  uint32_t member, epoch;
  uint64_t update; /* gradient updates that the policy had seen */
  int observation_dim, action_dim, noise_dim;
  double control_period;     /* s from one action to the next */
  const double* action_low;  /* [action_dim] bounds that the task's environment limits an action to: */
  const double* action_high; /* actions are given as the filter leaves them, the robot limits them as well */
} datacom_policy_info;

typedef struct datacom_policy_input {
  const double* observation; /* [observation_dim], units of the task; rounded to float32 once */
  const float* noise;        /* [noise_dim] standard normal numbers: acts as in training and evaluation;
                                NULL: zeros, the policy's centre */
  double previous_cost;      /* constraint cost of the present state; 0 at the start of an episode. Rule safe_layer
                                alone looks at it */
} datacom_policy_input;

typedef struct datacom_policy_judgement {
  double cvar;         /* conditional value at risk of the cost to come; NaN for rules without a learned constraint */
  double constraint;   /* cvar - delta: above 0 is unsafe; NaN likewise */
  double intervention; /* norm of what the filter changed in the action; 0 for rules without a filter */
} datacom_policy_judgement;

/* On success *policy is the caller's, to be freed. Else *policy is NULL and `message` [message_bytes], unless NULL,
 * holds a sentence that names the file and what is wrong, cut to fit, always ended by 0. */
int datacom_policy_load(const char* path, datacom_policy** policy, char* message, size_t message_bytes);
void datacom_policy_free(datacom_policy* policy); /* NULL: nothing */

/* Valid as long as the policy. */
const datacom_policy_info* datacom_policy_describe(const datacom_policy* policy);

/* action: [action_dim] out, float32 values; untouched when the result is not DATACOM_POLICY_OK: the robot then does
 * what it does without a policy. judgement: out, may be NULL. */
int datacom_policy_act(datacom_policy* policy, const datacom_policy_input* input, double* action,
                       datacom_policy_judgement* judgement);

#ifdef __cplusplus
}
#endif

#endif /* DATACOM_DEPLOY_ROBOT_DATACOM_POLICY_H_ */
