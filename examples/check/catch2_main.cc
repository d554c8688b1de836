// Catch2's main(), in a file of its own: it compiles slowly, and slalom need not see its accesses.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
