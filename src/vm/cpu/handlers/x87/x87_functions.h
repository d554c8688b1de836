// The functions of x87's transcendental instructions, for arguments without special cases.
//
// Every vendor has its own algorithms, which are correct except perhaps for the last bit. These are series in
// WideFloat arithmetic with well over a hundred correct bits before rounding. So results are correctly
// rounded in practice, and the same on every host.
#pragma once

#include "vm/cpu/handlers/x87/wide_float.h"

namespace slalom::vm {

struct SineCosine {
  WideFloat sine;
  WideFloat cosine;
};
// |x| must be below 2^63. It is reduced by the 66-bit value of pi that the manuals specify.
SineCosine sine_cosine(const X87Register& x);
WideFloat tangent(const X87Register& x);
// The angle of the point (x, y). Neither coordinate may be zero.
WideFloat arctangent(const WideFloat& y, const WideFloat& x);
WideFloat power_of_two_minus_one(const WideFloat& x);  // |x| < 1
WideFloat logarithm(const WideFloat& x);               // to base 2; x > 0
WideFloat logarithm_plus_one(const WideFloat& x);      // log2(x + 1), x + 1 > 0; also precise for small x
WideFloat pi();

}  // namespace slalom::vm
