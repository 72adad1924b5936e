// A strided window [members, rows, cols] into memory that a Kernels owns, on host or device; only that Kernels reads
// and writes it. The last dimension is contiguous. A View owns nothing and is copied freely.
#ifndef DATACOM_LEARNER_NN_VIEW_H_
#define DATACOM_LEARNER_NN_VIEW_H_

#include <algorithm>
#include <cstdint>

namespace datacom::learner {

template <class T>
struct View {
  T* data = nullptr;
  int members = 0, rows = 0, cols = 0;
  int64_t member_stride = 0, row_stride = 0;

  View Members(int first, int count) const {
    return {data + first * member_stride, count, rows, cols, member_stride, row_stride};
  }
  View Rows(int first, int count) const {
    return {data + first * row_stride, members, count, cols, member_stride, row_stride};
  }
  View Cols(int first, int count) const { return {data + first, members, rows, count, member_stride, row_stride}; }
  // A row [members, 1, n] as a column [members, n, 1], and a column whose numbers lie side by side as a row.
  View AsColumn() const { return {data, members, cols, 1, member_stride, 1}; }
  View AsRow() const { return {data, members, 1, rows, member_stride, rows}; }

  // Host memory only.
  T* row(int member, int r) const { return data + member * member_stride + r * row_stride; }
  T& at(int member, int r = 0, int c = 0) const { return row(member, r)[c]; }
};

using FloatView = View<float>;
using DoubleView = View<double>;

// Between packed values and a view in host memory.
template <class T>
void CopyIn(const T* packed, const View<T>& to) {
  for (int m = 0; m < to.members; ++m) {
    for (int r = 0; r < to.rows; ++r, packed += to.cols) std::copy_n(packed, to.cols, to.row(m, r));
  }
}

// Returns the end of what it has written.
template <class T, class Packed>
Packed* CopyOut(const View<T>& from, Packed* packed) {
  for (int m = 0; m < from.members; ++m) {
    for (int r = 0; r < from.rows; ++r) packed = std::copy_n(from.row(m, r), from.cols, packed);
  }
  return packed;
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_VIEW_H_
// SPDX-License-Identifier: Apache-2.0
