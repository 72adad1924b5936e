/* What the Python package needs to read the records of a run and to write a dataset, and the report's statistics. C99.
 * Thread-safe; the functions that say so read or write files. No function throws. */
#ifndef DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_
#define DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a stored row (docs/formats.md 3) of the run with this experiment.textproto, which it reads: lines
 * "name type width offset" with a type as "f4" or "u8", and first a line "row BYTES". Writes them to `text`
 * [text_bytes], or why it cannot. Returns 0, or another number when it cannot. */
int datacom_records_columns(const char* experiment, char* text, size_t text_bytes);

/* Writes a file that a user names (common/base/output_file.h). Returns 0, or the number of the absl::StatusCode with
 * the reason in `text` [text_bytes]. */
int datacom_records_write_file(const char* file, const char* content, size_t bytes, char* text, size_t text_bytes);

/* Rows of episodes, one after another. */
typedef struct {
  uint64_t count;
  int observation_dim, action_dim;
  const float *observation, *next_observation; /* [count, observation_dim] */
  const float* action;                         /* [count, action_dim], as executed, in the task's units */
  const float *reward, *cost;                  /* [count]; the signed cost of the state that the row reached */
  const uint8_t *absorbing, *last;             /* [count], 0 or 1 */
} datacom_records_rows;

/* Writes them as a dataset (proto/datacom/v1/dataset.proto) for pre-training in this task. `options`: TaskOptions as
 * text; `source`: where the rows come from, the dataset's run_id. Creates `folder`, which must not exist. Returns 0, or
 * another number with the reason in `text` [text_bytes]. */
int datacom_records_write_dataset(const char* task, const char* options, const char* source,
                                  const datacom_records_rows* rows, const char* folder, char* text, size_t text_bytes);

/* The report's interquartile mean of the finite values and its 95 % bootstrap interval: out = mean, low, high. Returns
 * the number of finite values; without any, the results are NaN. */
int datacom_records_interquartile_mean(const double* values, int count, double out[3]);

/* The report's t of Student's distribution with P(|T| <= t) = level in (0, 1), for degrees of freedom
 * above 0; NaN where it has no value, as for none or for a level of 1. */
double datacom_records_student_t(double freedom, double level);

#ifdef __cplusplus
}
#endif

#endif /* DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_ */
/* SPDX-License-Identifier: Apache-2.0 */
