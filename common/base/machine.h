// Describes the machine in records that people compare. Thread-safe; reads /proc.
#ifndef DATACOM_COMMON_BASE_MACHINE_H_
#define DATACOM_COMMON_BASE_MACHINE_H_

#include <string>

namespace datacom {

// The processor's model; "unknown" when the kernel does not name it.
std::string ProcessorName();

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_MACHINE_H_
