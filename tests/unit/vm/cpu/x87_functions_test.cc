// x87's transcendental instructions, compared with values computed with 600 bits (mpmath) and rounded to
// nearest.
//
// Sines, cosines and tangents are those of the argument reduced by the manuals' 66-bit value of pi.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "unit/vm/cpu/host_cpu.h"

namespace slalom::vm {
namespace {

struct Golden {
  uint8_t modrm;  // behind D9
  FxImage::Slot st0;
  FxImage::Slot st1;
  FxImage::Slot result;
};

const Golden kGolden[] = {
    {0xfe, {0x8000000000000000, 0x3fff}, {0x0000000000000000, 0x0000}, {0xd76aa47848677021, 0x3ffe}},
    {0xff, {0x8000000000000000, 0x3fff}, {0x0000000000000000, 0x0000}, {0x8a51407da8345c92, 0x3ffe}},
    {0xf2, {0x8000000000000000, 0x3fff}, {0x0000000000000000, 0x0000}, {0xc75922e5f71d2dc5, 0x3fff}},
    {0xfe, {0xc90fdaa22168c235, 0x4000}, {0x0000000000000000, 0x0000}, {0x8000000000000000, 0xbfbf}},
    {0xff, {0xc90fdaa22168c235, 0x4000}, {0x0000000000000000, 0x0000}, {0x8000000000000000, 0xbfff}},
    {0xf2, {0xc90fdaa22168c235, 0x4000}, {0x0000000000000000, 0x0000}, {0x8000000000000000, 0x3fbf}},
    {0xfe, {0xc90fdaa22168c234, 0x3fff}, {0x0000000000000000, 0x0000}, {0x8000000000000000, 0x3fff}},
    {0xff, {0xc90fdaa22168c234, 0x3fff}, {0x0000000000000000, 0x0000}, {0xc000000000000000, 0x3fbf}},
    {0xf2, {0xc90fdaa22168c234, 0x3fff}, {0x0000000000000000, 0x0000}, {0xaaaaaaaaaaaaaaab, 0x403e}},
    {0xfe, {0xc164d8399f767c45, 0xc00e}, {0x0000000000000000, 0x0000}, {0xef26f1377f7212f5, 0x3ffd}},
    {0xff, {0xc164d8399f767c45, 0xc00e}, {0x0000000000000000, 0x0000}, {0xe25b6f285b3fb96d, 0xbffe}},
    {0xf2, {0xc164d8399f767c45, 0xc00e}, {0x0000000000000000, 0x0000}, {0x873c3a4ff520e7a5, 0xbffe}},
    {0xfe, {0xf1446beab0c11fde, 0xc034}, {0x0000000000000000, 0x0000}, {0xfe2ff4e27176eaaf, 0x3ffe}},
    {0xff, {0xf1446beab0c11fde, 0xc034}, {0x0000000000000000, 0x0000}, {0xf348ca468fc888df, 0x3ffb}},
    {0xf2, {0xf1446beab0c11fde, 0xc034}, {0x0000000000000000, 0x0000}, {0x85bc869555336718, 0x4002}},
    {0xfe, {0x876ce2ef87b0b125, 0xc01c}, {0x0000000000000000, 0x0000}, {0xf8704ed54096fbcb, 0x3ffe}},
    {0xff, {0x876ce2ef87b0b125, 0xc01c}, {0x0000000000000000, 0x0000}, {0xf7098571ab1fec59, 0xbffc}},
    {0xf2, {0x876ce2ef87b0b125, 0xc01c}, {0x0000000000000000, 0x0000}, {0x80b9e6e5d9ce8839, 0xc001}},
    {0xfe, {0xbfc1ea36f17fd374, 0x4034}, {0x0000000000000000, 0x0000}, {0xba0a05bfd1fc9ad1, 0xbffd}},
    {0xff, {0xbfc1ea36f17fd374, 0x4034}, {0x0000000000000000, 0x0000}, {0xee8098517ed2e9e3, 0x3ffe}},
    {0xf2, {0xbfc1ea36f17fd374, 0x4034}, {0x0000000000000000, 0x0000}, {0xc7b0189e8805e61d, 0xbffd}},
    {0xfe, {0xa827688de6a16a3b, 0x3fef}, {0x0000000000000000, 0x0000}, {0xa827688db64370b6, 0x3fef}},
    {0xff, {0xa827688de6a16a3b, 0x3fef}, {0x0000000000000000, 0x0000}, {0xffffffff2318816a, 0x3ffe}},
    {0xf2, {0xa827688de6a16a3b, 0x3fef}, {0x0000000000000000, 0x0000}, {0xa827688e475d5d46, 0x3fef}},
    {0xf0, {0xde5271007814e8a2, 0x3ff2}, {0x0000000000000000, 0x0000}, {0x9a1cfbccb97075ec, 0x3ff2}},
    {0xf0, {0x9a1afe878b33e968, 0x3ffd}, {0x0000000000000000, 0x0000}, {0xed8e099c20336904, 0x3ffc}},
    {0xf0, {0xbb2edb20035b7399, 0x3ff1}, {0x0000000000000000, 0x0000}, {0x81bfd8edfa74d777, 0x3ff1}},
    {0xf0, {0xae9c82b1478c281d, 0x3ff7}, {0x0000000000000000, 0x0000}, {0xf282a61ab7dae4ba, 0x3ff6}},
    {0xf0, {0xcc11d357c30d8b76, 0x3fed}, {0x0000000000000000, 0x0000}, {0x8d7359b4fefa7521, 0x3fed}},
    {0xf0, {0x9e115e4b9e30691c, 0x3ff9}, {0x0000000000000000, 0x0000}, {0xdc99b9b052caa7da, 0x3ff8}},
    {0xf1, {0x8074513021da8978, 0x3fd7}, {0xc60a3cab359eeefb, 0xbff8}, {0xf784b27191d71964, 0x3ffd}},
    {0xf1, {0xaa759159fb7ff337, 0x3fec}, {0xd04b74ba4a0fe75d, 0xbff7}, {0xf1f83fb4f8ad77ec, 0x3ffb}},
    {0xf1, {0xad864c44e049548e, 0x4027}, {0xae81d66d346c6e2b, 0xbff7}, {0xdc872943feb9ccf9, 0xbffc}},
    {0xf1, {0xe4cc4132f7108e96, 0x4008}, {0x8585a01c4c7d6df0, 0x4002}, {0xa4328dd14b374737, 0x4005}},
    {0xf1, {0xef901b932a7c1880, 0x3fe9}, {0x90acff0043892dfc, 0x4000}, {0xbec0acf4fd1b179c, 0xc004}},
    {0xf1, {0x9a656aafd1412584, 0x4022}, {0x9892139600ddb74d, 0x4000}, {0xa829eceddf7ae416, 0x4005}},
    {0xf9, {0xdaf84e6b4f596727, 0x3fe0}, {0xd0d7d13fb2489191, 0x3ff6}, {0x80db7939fa8f4c04, 0x3fd9}},
    {0xf9, {0xb465325278f845f5, 0x3fd8}, {0xf9a01fe8419521fe, 0xbfec}, {0xfdc661bcd8ed47fc, 0xbfc6}},
    {0xf9, {0xdb8e8fb2bff29101, 0x3fe6}, {0xc9a937a68c8f95ef, 0x4005}, {0xf984da2f8a3b6557, 0x3fed}},
    {0xf9, {0x9419cf4d60597bdc, 0x3fcd}, {0xb52fa53c0bf64ef7, 0xbff6}, {0x973901f585b9a6cb, 0xbfc5}},
    {0xf9, {0xf453324ef486ab73, 0x3fd9}, {0xbeff8b3fc177f113, 0x4008}, {0x837e2442a93aca77, 0x3fe4}},
    {0xf3, {0xdad3ba328332f05a, 0xc01a}, {0xc68deb5d403a960a, 0x3ffe}, {0xc90fda9e80466f90, 0x4000}},
    {0xf3, {0xbf9703c096fabb7b, 0xc012}, {0xdc14ed575e0730b3, 0x3ff3}, {0xc90fdaa18e5fbdec, 0x4000}},
    {0xf3, {0xf21ff5eb6ed78f5d, 0x3fe6}, {0x834c1b69573ac59a, 0x4008}, {0xc90fdaa1e665ec11, 0x3fff}},
    {0xf3, {0xa5f02628eb07c30d, 0x3ff6}, {0xb3de08f9ec983704, 0x4003}, {0xc90c29ef0637eecc, 0x3fff}},
    {0xf3, {0xaf9b74f84ffcbf42, 0x3ff5}, {0xcc7c6d812d6f2efc, 0xbfe6}, {0x950cbb27cce43863, 0xbff0}},
    {0xf3, {0xb89c4e56261c374b, 0x400d}, {0xfbd9e8a1ff297d0e, 0xbfeb}, {0xae9f1366e0c179de, 0xbfdd}},
    {0xf3, {0x94b9adb50c6dea3d, 0xc007}, {0xe7e84707ec717f15, 0x3fe3}, {0xc90fdaa21b2c0922, 0x4000}},
    {0xf3, {0x980dc6ffbd953dc2, 0xbff7}, {0xf4a677c6400db00d, 0x400a}, {0xc90fe493db283476, 0x3fff}},
};

TEST(X87Functions, AreCorrectlyRounded) {
  HostCpu host;
  for (const Golden& golden : kGolden) {
    CpuCase start;
    start.fx.valid = 0x03;
    start.fx.st[0] = golden.st0;
    start.fx.st[1] = golden.st1;
    const std::vector<uint8_t> bytes = {0xd9, golden.modrm};
    const CpuResult result = host.run_handler(bytes, start);
    const bool pushes = golden.modrm == 0xf2;  // pushes a one on top
    EXPECT_EQ(result.state.fx.st[pushes ? 1 : 0], golden.result)
        << std::hex << unsigned{golden.modrm} << " of " << golden.st0.high << ":" << golden.st0.low;
    EXPECT_EQ(result.state.fx.status & 0x3f, 0x20);
  }
}

// Maps magnitudes to integers, so that neighbouring magnitudes are neighbouring integers.
__int128 place(const FxImage::Slot& r) {
  return static_cast<__int128>(r.high & 0x7fff) << 63 | static_cast<__int128>(r.low & ~(uint64_t{1} << 63));
}

// Rounding down and up gives the two neighbours of the exact value. C1 is set if the value was rounded up.
TEST(X87Functions, DirectedRoundingEnclosesTheValue) {
  HostCpu host;
  for (const Golden& golden : kGolden) {
    if (golden.modrm == 0xf2) continue;
    CpuCase start;
    start.fx.valid = 0x03;
    start.fx.st[0] = golden.st0;
    start.fx.st[1] = golden.st1;
    const std::vector<uint8_t> bytes = {0xd9, golden.modrm};
    start.fx.control = 0x77f;
    const CpuResult down = host.run_handler(bytes, start);
    start.fx.control = 0xb7f;
    const CpuResult up = host.run_handler(bytes, start);
    const bool negative = (golden.result.high & 0x8000) != 0;
    const __int128 small = place((negative ? up : down).state.fx.st[0]);
    const __int128 nearest = place(golden.result);
    EXPECT_TRUE(place((negative ? down : up).state.fx.st[0]) == small + 1);
    EXPECT_TRUE(nearest == small || nearest == small + 1);
    EXPECT_EQ(up.state.fx.status & 0x200, negative ? 0 : 0x200);
    EXPECT_EQ(down.state.fx.status & 0x200, negative ? 0x200 : 0);
  }
}

TEST(X87Functions, AgreeWithTheLibrary) {
  HostCpu host;
  for (double x = -40; x < 40; x += 0.37) {
    CpuCase start;
    start.fx.valid = 0x01;
    const long double wide = x;
    std::memcpy(&start.fx.st[0].low, &wide, 8);
    std::memcpy(&start.fx.st[0].high, reinterpret_cast<const uint8_t*>(&wide) + 8, 2);
    const CpuResult result = host.run_handler(std::vector<uint8_t>{0xd9, 0xfb}, start);
    long double sine, cosine;
    std::memcpy(&cosine, &result.state.fx.st[0], 10);
    std::memcpy(&sine, &result.state.fx.st[1], 10);
    EXPECT_NEAR(static_cast<double>(sine), std::sin(x), 1e-15);
    EXPECT_NEAR(static_cast<double>(cosine), std::cos(x), 1e-15);
  }
}

}  // namespace
}  // namespace slalom::vm
