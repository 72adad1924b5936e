/* A robot's program in C99: loads a policy file and answers each observation on its standard input with an action.
 *
 * usage: policy_driver FILE. In, a frame a step: double observation [observation_dim], float noise [noise_dim], double
 * previous cost. Out, a frame a step: double action [action_dim], double cvar, constraint, intervention. At the start
 * one line: "task acting_rule member update observation_dim action_dim noise_dim". Exits with 10 + what load returned.
 */
#include <stdio.h>
#include <stdlib.h>

#include "deploy/robot/datacom_policy.h"

static int Drive(datacom_policy* policy, const datacom_policy_info* info, double* observation, float* noise,
                 double* action) {
  datacom_policy_input input;
  datacom_policy_judgement judgement;
  input.observation = observation;
  input.noise = noise;
  while (fread(observation, sizeof *observation, (size_t)info->observation_dim, stdin) ==
         (size_t)info->observation_dim) {
    int status;
    if (fread(noise, sizeof *noise, (size_t)info->noise_dim, stdin) != (size_t)info->noise_dim ||
        fread(&input.previous_cost, sizeof input.previous_cost, 1, stdin) != 1) {
      return 2;
    }
    status = datacom_policy_act(policy, &input, action, &judgement);
    if (status != DATACOM_POLICY_OK) return 20 + status;
    fwrite(action, sizeof *action, (size_t)info->action_dim, stdout);
    fwrite(&judgement.cvar, sizeof judgement.cvar, 1, stdout);
    fwrite(&judgement.constraint, sizeof judgement.constraint, 1, stdout);
    fwrite(&judgement.intervention, sizeof judgement.intervention, 1, stdout);
    fflush(stdout);
  }
  return 0;
}

int main(int argc, char** argv) {
  datacom_policy* policy = NULL;
  char why[512];
  const datacom_policy_info* info;
  double *observation, *action;
  float* noise;
  int status;
  if (argc != 2) return 2;
  status = datacom_policy_load(argv[1], &policy, why, sizeof why);
  if (status != DATACOM_POLICY_OK) {
    fprintf(stderr, "%s\n", why);
    return 10 + status;
  }
  info = datacom_policy_describe(policy);
  printf("%s %s %u %lu %d %d %d\n", info->task, info->acting_rule, (unsigned)info->member, (unsigned long)info->update,
         info->observation_dim, info->action_dim, info->noise_dim);
  fflush(stdout);
  observation = malloc(sizeof *observation * (size_t)info->observation_dim);
  noise = malloc(sizeof *noise * (size_t)info->noise_dim);
  action = malloc(sizeof *action * (size_t)info->action_dim);
  status = observation && noise && action ? Drive(policy, info, observation, noise, action) : 3;
  free(observation);
  free(noise);
  free(action);
  datacom_policy_free(policy);
  return status;
}
/* SPDX-License-Identifier: Apache-2.0 */
