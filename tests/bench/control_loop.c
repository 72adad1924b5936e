/* How long a decision of a policy takes in a robot's control loop, and how late the loop wakes up.
 *
 *   datacom-bench-control-loop POLICY_FILE HERTZ SECONDS
 *
 * Sleeps until each tick of an absolute clock, decides once, and prints percentiles in microseconds. The observations
 * change from tick to tick, so that caches are as cold as the pause leaves them. Exit code 1: a decision failed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "deploy/robot/datacom_policy.h"

static double Microseconds(const struct timespec* from, const struct timespec* to) {
  return 1e6 * (double)(to->tv_sec - from->tv_sec) + 1e-3 * (double)(to->tv_nsec - from->tv_nsec);
}

static int Less(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void Print(const char* what, double* values, long count) {
  qsort(values, (size_t)count, sizeof *values, Less);
  printf("%-9s median %8.1f us   99 %% %8.1f   99.9 %% %8.1f   worst %8.1f\n", what, values[count / 2],
         values[count * 99 / 100], values[count * 999 / 1000], values[count - 1]);
}

int main(int argc, char** argv) {
  datacom_policy* policy;
  char why[256];
  if (argc != 4) return fprintf(stderr, "usage: %s POLICY_FILE HERTZ SECONDS\n", argv[0]), 2;
  const double hertz = atof(argv[2]);
  const long ticks = (long)(hertz * atof(argv[3]));
  if (!(hertz >= 1) || ticks < 1000) return fprintf(stderr, "at least 1 Hz and 1,000 ticks\n"), 2;
  if (datacom_policy_load(argv[1], &policy, why, sizeof why) != DATACOM_POLICY_OK) return fprintf(stderr, "%s\n", why), 1;
  const datacom_policy_info* const info = datacom_policy_describe(policy);
  double* const observation = calloc((size_t)info->observation_dim, sizeof(double));
  double* const action = calloc((size_t)info->action_dim, sizeof(double));
  double* const decision = calloc((size_t)ticks, sizeof(double));
  double* const late = calloc((size_t)ticks, sizeof(double));
  struct timespec tick, woken, done;
  clock_gettime(CLOCK_MONOTONIC, &tick);
  for (long i = 0; i < ticks; ++i) {
    tick.tv_nsec += (long)(1e9 / hertz);
    tick.tv_sec += tick.tv_nsec / 1000000000;
    tick.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &tick, NULL) == EINTR) continue;
    clock_gettime(CLOCK_MONOTONIC, &woken);
    for (int k = 0; k < info->observation_dim; ++k) observation[k] = sin(0.01 * (double)i + k);
    const datacom_policy_input input = {observation, NULL, 0};
    if (datacom_policy_act(policy, &input, action, NULL) != DATACOM_POLICY_OK) return fprintf(stderr, "tick %ld\n", i), 1;
    clock_gettime(CLOCK_MONOTONIC, &done);
    late[i] = Microseconds(&tick, &woken);
    decision[i] = Microseconds(&woken, &done);
  }
  printf("%s, %.0f Hz, %ld decisions\n", info->experiment, hertz, ticks);
  Print("decision", decision, ticks);
  Print("late", late, ticks);
  datacom_policy_free(policy);
  return 0;
}
/* SPDX-License-Identifier: Apache-2.0 */
