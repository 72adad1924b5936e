// Which run a learner trains, and which start of the learner this is. Plain data.
#ifndef DATACOM_LEARNER_RUN_IDENTITY_H_
#define DATACOM_LEARNER_RUN_IDENTITY_H_

#include <cstdint>
#include <string>

#include "datacom/v1/experiment.pb.h"

namespace datacom::learner {

struct RunIdentity {
  std::string run_id;
  uint32_t incarnation = 1;   // grows by one with every start of the learner
  v1::Experiment experiment;  // resolved
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_IDENTITY_H_
