/* What the Python package needs to read the records of a run, and the report's statistics. C99. Pure functions;
 * thread-safe; datacom_records_columns reads a file. No function throws. */
#ifndef DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_
#define DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a stored row (docs/formats.md 3) of the run with this experiment.textproto: lines "name type width
 * offset", and first a line "row BYTES". Writes them to `text` [text_bytes], or why it cannot. Returns 0, or 1 when it
 * cannot. */
int datacom_records_columns(const char* experiment, char* text, size_t text_bytes);

/* The report's interquartile mean of the finite values and its 95 % bootstrap interval: out = mean, low, high. Returns
 * the number of finite values; without any, the results are NaN. */
int datacom_records_interquartile_mean(const double* values, int count, double out[3]);

/* The report's t of Student's distribution with P(|T| <= t) = level in (0, 1), for degrees of freedom
 * above 0. */
double datacom_records_student_t(double freedom, double level);

#ifdef __cplusplus
}
#endif

#endif /* DATACOM_DEPLOY_PYTHON_NATIVE_DATACOM_RECORDS_H_ */
/* SPDX-License-Identifier: Apache-2.0 */
