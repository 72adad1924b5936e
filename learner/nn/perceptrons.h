// Passes through perceptrons (parameter_layout.h). `block`: parameters or gradients of the members, [members, 1, size];
// x: [members, rows, in].
#ifndef DATACOM_LEARNER_NN_PERCEPTRONS_H_
#define DATACOM_LEARNER_NN_PERCEPTRONS_H_

#include "learner/nn/parameter_layout.h"
#include "learner/nn/view.h"

namespace datacom::learner {

class Perceptrons {
 public:
  virtual ~Perceptrons() = default;

  virtual void Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) = 0;
  // Adjoints of the hidden pre-activations, for an objective whose gradient for the output is d_out [members, rows,
  // out]. For swish units and with layer_norm once after each Forward on the same rows, which leaves the units' slopes
  // or the normalised pre-activations in tape.adjoint.
  virtual void Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) = 0;
  // Multiplies the rows of adjoints by d_out [members, rows, 1]: turns a unit output's adjoints into an objective's
  // adjoints.
  virtual void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) = 0;
  // d_x [members, rows, n]: gradient for the n input columns from first_col on; added to d_x if `add`.
  virtual void InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col, bool add,
                             const FloatView& d_x) = 0;
  virtual void ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                                 const FloatView& gradient_block) = 0;
  // For a net with one output y and ReLU hidden units, without layer_norm: the gradient of <d_value, y> + <d_slope,
  // dy/dx> for the parameters, given the adjoints of a unit output in `tape`. `tangent` has the shape of tape; it and
  // d_slope [members, rows, in] are overwritten.
  virtual void SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x, const FloatView& d_value,
                             const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                             const FloatView& gradient_block) = 0;
  // Forward mode, for a net without repeated inputs, swish units and layer_norm: tangent.out [members, rows, out] = the
  // derivative of the output along `direction`, a block like `block`: d/de net(block + e direction)(x) at e = 0. `tape`
  // holds the hidden units at x. tangent.hidden is overwritten.
  virtual void Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
                       const MlpTape& tape, const MlpTape& tangent) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_PERCEPTRONS_H_
// SPDX-License-Identifier: Apache-2.0
