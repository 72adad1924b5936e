// Verifies progress.csv and the TensorBoard files. Not thread-safe; blocks on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_RECORDS_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_RECORDS_H_

#include "deploy/tools/verify/run.h"

namespace datacom::verify {

// Returns whether the records show updates.
bool VerifyProgress(Run* run);
void VerifyTensorboard(Run* run);

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_RECORDS_H_
