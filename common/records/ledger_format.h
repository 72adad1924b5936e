// Names and layout shared by the ledger's writer and readers (ledger.h explains them). Pure functions.
#ifndef DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_
#define DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace datacom::ledger {

inline constexpr char kViolationsPath[] = "ledger/violations.csv";
inline constexpr char kStepMagic[] = "DCSTEP01";
inline constexpr size_t kStepMagicBytes = 8, kStepHeaderBytes = 16;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are copied byte by byte");

template <typename T>
void Put(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void PutFloats(const float* values, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(float));
}

std::string StepsPath(uint32_t member);                        // below the run folder
std::string StepHeader(uint32_t member, uint32_t action_dim);  // kStepHeaderBytes
constexpr size_t StepBytes(uint32_t action_dim) { return 24 + sizeof(float) * action_dim; }
std::vector<std::string> ViolationColumns(uint32_t action_dim);

}  // namespace datacom::ledger

#endif  // DATACOM_COMMON_RECORDS_LEDGER_FORMAT_H_
