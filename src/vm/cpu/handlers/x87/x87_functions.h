// The functions behind x87's transcendental instructions, for arguments without special cases.
//
// Every vendor has algorithms of its own for these, right to the last bit or nearly so. Here they are series
// in WideFloat arithmetic, exact to well over a hundred bits before they are rounded: correctly rounded in
// practice, and the same on every host.
#pragma once

#include "vm/cpu/handlers/x87/wide_float.h"

namespace slalom::vm {

struct SineCosine {
  WideFloat sine;
  WideFloat cosine;
};
// The argument's size is below 2^63. It is reduced by the 66-bit value of pi that the manuals name.
SineCosine sine_cosine(const X87Register& x);
WideFloat tangent(const X87Register& x);
// The angle of the point (x, y), neither coordinate zero.
WideFloat arctangent(const WideFloat& y, const WideFloat& x);
WideFloat power_of_two_minus_one(const WideFloat& x);  // |x| < 1
WideFloat logarithm(const WideFloat& x);               // to base 2; x > 0
WideFloat logarithm_plus_one(const WideFloat& x);      // of x + 1 > 0, exact for small x too
WideFloat pi();

}  // namespace slalom::vm
