/** The functions of the filter language that DuckDB does not have, or has with another meaning. */
import { textFunctions } from './filter-text-functions.ts'
import { timeFunctions } from './filter-time-functions.ts'
import { urlFunctions } from './filter-url-functions.ts'
import type { OwnFunction } from './own-function.ts'

export const ownFunctions: ReadonlyMap<string, OwnFunction> = new Map([...timeFunctions, ...textFunctions, ...urlFunctions])
