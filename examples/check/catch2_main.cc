// Catch2's main(), in a file of its own: it takes long to compile, and its accesses are nobody's business.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
