// The entry point of libmainstem_adbc, for programs that link it themselves. Driver managers find it by its name.
#pragma once

#include <arrow-adbc/adbc.h>

#ifdef __cplusplus
extern "C" {
#endif

// Fills in `driver`, a struct AdbcDriver, for `version` ADBC_VERSION_1_1_0.
AdbcStatusCode AdbcMainstemAdbcInit(int version, void* driver, struct AdbcError* error);

#ifdef __cplusplus
}
#endif
