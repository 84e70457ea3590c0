/** How a column reads times that are not in ISO 8601: as numbers since 1970, or in a format of strptime. */
import type { Connection } from '#duckdb/database.ts'
import { definitionLimits } from '#model/limits.ts'
import type { ColumnType } from '#model/types/column-type.ts'
import { ConditionError, checkCharacters } from './condition.ts'
import { computedFrom } from './own-function.ts'
import { checkConstant } from './text-constants.ts'
import { epochUnits, formatCheck, offsetPatternOf, timeOfNumber, timeOfText } from './time-formats.ts'

/** No time is longer. So a pattern takes a bounded time on a text. */
const TEXT_BYTES_MAX = 256

/** Throws ConditionError if a column of the type cannot have the format. */
export async function checkFormat(connection: Connection, format: string, type: ColumnType | undefined): Promise<void> {
  if (type !== undefined && (type.depth > 0 || (type.scalar !== 'TIMESTAMP' && type.scalar !== 'TIMESTAMPTZ'))) {
    throw new ConditionError('is only for columns of type TIMESTAMP or TIMESTAMPTZ')
  }
  checkCharacters(format)
  if (Object.hasOwn(epochUnits, format)) return
  const names = Object.keys(epochUnits).join(', ')
  if (!format.includes('%')) throw new ConditionError(`must be one of ${names}, or a format such as %d/%m/%Y %H:%M:%S`)
  offsetPatternOf(format)
  await checkConstant(connection, formatCheck(format), definitionLimits.compileTimeoutMs)
}

/** SQL for the time of a text in a format that was checked; NULL if the text is not such a time. */
export function formattedTime(text: string, format: string, type: ColumnType): string {
  const unit = Object.hasOwn(epochUnits, format) ? epochUnits[format] : undefined
  const instant =
    unit === undefined
      ? timeOfText('x', format)
      : `CASE WHEN regexp_full_match(x, '[+-]?[0-9]+') THEN ${timeOfNumber('TRY_CAST(x AS BIGINT)', { scalar: 'BIGINT', depth: 0 }, unit)} ELSE ${timeOfNumber('TRY_CAST(x AS DOUBLE)', { scalar: 'DOUBLE', depth: 0 }, unit)} END`
  const time = computedFrom(text, (x) => `CASE WHEN strlen(${x}) <= ${TEXT_BYTES_MAX} THEN ${instant} END`)
  return type.scalar === 'TIMESTAMPTZ' ? `make_timestamptz(epoch_us(${time}))` : time
}
