/* Many environments of one task, stepped by threads: what `datacom.make_vec` in Python stands on. C99; the library
 * holds its own Protocol Buffers and exports only the names of this header.
 *
 * An observation is float32 and an action is float32, as in the rows of a run; the values are the ones that an actor
 * would see. Every episode is a pure function of (seed of its environment, number of the episode, actions).
 *
 * Threads: sets of environments are independent of each other; use one set from one thread at a time. A step allocates
 * no memory. It blocks until every environment has stepped. No function throws. Errors are sentences in `message`
 * [message_bytes], cut to fit and terminated by 0. */
#ifndef DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_ENV_H_
#define DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_ENV_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct datacom_env datacom_env;

/* Return values; the numbers will not change. */
enum {
  DATACOM_ENV_OK = 0,
  DATACOM_ENV_BAD_ARGUMENT = 1, /* unknown task or option, wrong count, a number that is not finite */
  DATACOM_ENV_FINISHED = 2,     /* without automatic resets: an environment's episode has ended */
  DATACOM_ENV_FAILED = 3        /* out of memory or threads, or a simulator that cannot start */
};

/* What happens at the end of an episode; Gymnasium's AutoresetMode. */
enum {
  DATACOM_ENV_NEXT_STEP = 0, /* the next step ignores the action and resets; its reward is 0 */
  DATACOM_ENV_SAME_STEP = 1, /* the step resets; the last observation is in final_observation */
  DATACOM_ENV_DISABLED = 2   /* the caller resets */
};

typedef struct datacom_env_info {
  const char* task;
  int observation_dim, action_dim;
  int horizon;                            /* steps of an episode: a longer one is truncated */
  double control_period;                  /* seconds from one action to the next */
  const double *action_low, *action_high; /* [action_dim] */
  int costs;                              /* number of named costs; 0: the task has one cost without a name */
  const char* const* cost_names;          /* [costs] */
  int inits;                              /* number of start values that a reset can set */
  const char* const* init_names;          /* [inits] */
  int q_dim, x_dim;                       /* sizes of the control-affine model */
} datacom_env_info;

/* Where results go, each for all environments; the caller owns the arrays. final_observation may be NULL. */
typedef struct datacom_env_result {
  float* observation;       /* [environments, observation_dim] */
  float* final_observation; /* [environments, observation_dim], written where an episode ended, in mode SAME_STEP */
  double* reward;           /* [environments] */
  double* cost;             /* [environments] raw and signed, of the reached state; above 0 is a violation. After a
                               reset the cost of the start */
  float* named_cost;        /* [environments, costs] of the reached state; may be NULL */
  uint8_t* terminated;      /* [environments] the task ended (absorbing) */
  uint8_t* truncated;       /* [environments] the time limit, or an invalid step */
  uint8_t* success;         /* [environments] whether the episode so far is a success */
  uint8_t* invalid; /* [environments] the simulator warned or computed a value that is not finite: the observation is
                       the one before, reward is 0 */
} datacom_env_result;

/* task: its name, or the path of a task.textproto. options: fields of TaskOptions in Protocol Buffers' text format.
 * environments, threads >= 1. On success the caller owns *env, else it is NULL. The seeds are drawn by the operating
 * system. */
int datacom_env_make(const char* task, const char* options, int environments, int threads, int autoreset,
                     datacom_env** env, char* message, size_t message_bytes);
void datacom_env_free(datacom_env* env); /* does nothing for NULL */

/* The result is valid as long as the environments. */
const datacom_env_info* datacom_env_describe(const datacom_env* env);

/* Starts an episode in the environments where mask [environments] is not 0 (NULL: in all). seeds [environments]: where
 * has_seed is not 0, episodes count from 0 again with this seed; seeds NULL: none has. init: start values, `inits`
 * names and numbers, for every environment that starts. Writes the rows of these environments only. */
typedef struct datacom_env_start {
  const uint8_t* mask;
  const uint64_t* seeds;
  const uint8_t* has_seed; /* [environments] */
  int inits;
  const char* const* init_names;
  const double* init_values;
} datacom_env_start;
int datacom_env_reset(datacom_env* env, const datacom_env_start* start, const datacom_env_result* result, char* message,
                      size_t message_bytes);

/* action: [environments, action_dim], clipped as the task specifies. Steps nothing unless every number is finite. */
int datacom_env_step(datacom_env* env, const float* action, const datacom_env_result* result, char* message,
                     size_t message_bytes);

/* Draws the present state of one environment by rays: rgb [height, width, 3]. camera: a name of the model's; "": the
 * first camera fixed to the world. DATACOM_ENV_BAD_ARGUMENT, and the cameras that there are, for an unknown one, or a
 * size that is not 1 to 4,096; DATACOM_ENV_FAILED before the first reset. */
int datacom_env_draw(datacom_env* env, int environment, const char* camera, int width, int height, uint8_t* rgb,
                     char* message, size_t message_bytes);

/* The control-affine model of the task, q_dot = f + G u, at `count` observations [count, observation_dim]. Outputs:
 * q, f [count, q_dim]; x, x_dot [count, x_dim]; G [count, q_dim, action_dim]. */
void datacom_env_dynamics(const datacom_env* env, int count, const float* observation, double* q, double* x,
                          double* x_dot, double* f, double* G);

#ifdef __cplusplus
}
#endif

#endif /* DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_ENV_H_ */
/* SPDX-License-Identifier: Apache-2.0 */
