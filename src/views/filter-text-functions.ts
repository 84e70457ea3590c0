/** Functions of text that DuckDB lacks, or that need a bound: parts, hashes, addresses without their end, names of a JSON object. */
import { quoteLiteral } from '#duckdb/quote.ts'
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, called, objectOf, type Part, quoted, writtenAs } from './condition.ts'
import { scalarSize, sumSizes } from './condition-budget.ts'
import { integerConstant } from './filter-constants.ts'
import { isScalar, kindOf, textType } from './filter-types.ts'
import { hmacSql } from './hmac.ts'
import { maskedAddress } from './masked-address.ts'
import { checkText, type OwnCall, type OwnFunction, takeArguments } from './own-function.ts'
import { patternSize } from './pattern-size.ts'

/** The largest number of a part of a text. */
const PARTS_MAX = 100

/** The names of an object take up to four times the memory of its JSON. */
const NAMES_FACTOR = 4

/** Texts that are made on the way to a masked address, each shorter than 64 bytes. */
const addressSize = { values: 0, bytes: 512 }

function splitPart(call: OwnCall): Part {
  const usage = "a text, a separator and the number of a part, such as split_part(code, '-', 2)"
  const [text, separator, part] = takeArguments(call, 3, usage) as [Part, Part, Part]
  checkText(call, text)
  if (separator.text === undefined || separator.text === '') {
    throw new ConditionError(`the separator of ${quoted(call.name)} must be a text constant that is not empty, such as ','`).of(
      separator,
    )
  }
  const number = Number(integerConstant(call.nodes[2]) ?? 0)
  const isOneCharacter = [...separator.text].length === 1
  if (number === 0 || Math.abs(number) > PARTS_MAX || (number < 0 && !isOneCharacter)) {
    const fromEnd = isOneCharacter ? `, or from -1 to -${PARTS_MAX} from the end` : ''
    throw new ConditionError(`the part of ${quoted(call.name)} must be a number from 1 to ${PARTS_MAX}${fromEnd}`).of(part)
  }
  const pattern = partPattern(separator.text, number)
  const size = patternSize(pattern)
  if (size > definitionLimits.patternSizeMax)
    throw new ConditionError(`the separator of ${quoted(call.name)} is too long for so many parts`).of(separator)
  call.budget.patterns.countFunction(call.name, size, text.size)
  return {
    sql: (column) => `regexp_extract(${text.sql(column)}, ${quoteLiteral(pattern)}, 1)`,
    type: textType,
    size: call.budget.sizeOf(textType, [text]),
  }
}

/** Returns a pattern whose group is a part. A list of all parts would take sixteen bytes for each of them. */
function partPattern(separator: string, number: number): string {
  const escaped = separator.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')
  const others = Math.abs(number) - 1
  if ([...separator].length > 1) return `^(?s:(?:.*?${escaped}){${others}}(.*?)(?:${escaped}|$))`
  const part = `[^${separator.replace(/[\\^\]-]/g, '\\$&')}]*`
  return number > 0 ? `^(?:${part}${escaped}){${others}}(${part})` : `(?:^|${escaped})(${part})(?:${escaped}${part}){${others}}$`
}

function sha256(call: OwnCall): Part {
  const [text] = takeArguments(call, 1, 'one text, such as sha256(email)') as readonly [Part]
  checkText(call, text)
  // The hash is short, but takes long to compute.
  call.budget.add(sumSizes([text, { size: scalarSize }]))
  return { sql: called('sha256', [text]), type: textType, size: scalarSize }
}

/** SHA-256 with a key that nobody can leave out: the hash of a short text cannot be found by trying all texts. */
function hmacSha256(call: OwnCall): Part {
  const usage = "the name of a secret and one text, such as hmac_sha256('email_key', email)"
  const [secret, text] = takeArguments(call, 2, usage) as [Part, Part]
  const name = secret.text
  try {
    if (name === undefined)
      throw new ConditionError(`${quoted(call.name)} takes the name of a secret in quotes, not an expression`)
    call.secrets.use(name)
  } catch (error) {
    throw error instanceof ConditionError ? error.in(objectOf(call.nodes[0])) : error
  }
  checkText(call, text)
  // The text is copied behind the key, and then hashed.
  call.budget.add(sumSizes([text, text, { size: scalarSize }, { size: scalarSize }]))
  return { sql: (column) => hmacSql(name, text.sql(column)), type: textType, size: scalarSize }
}

function maskIp(call: OwnCall): Part {
  const [text] = takeArguments(call, 1, 'one address, such as mask_ip(client)') as readonly [Part]
  checkText(call, text)
  call.budget.add(addressSize)
  return { sql: (column) => maskedAddress(text.sql(column)), type: textType, size: scalarSize }
}

function jsonKeys(call: OwnCall): Part {
  const [given] = takeArguments(call, 1, 'one JSON value, such as json_keys(extra)') as readonly [Part]
  const json = given.text === undefined ? given : call.values.constant(given.text, { scalar: 'JSON', depth: 0 }, given.at)
  if (json.type !== 'unknown' && !isScalar(json.type, 'JSON')) {
    throw new ConditionError(
      `${quoted(call.name)} takes JSON, not ${kindOf(json.type)}: cast it, such as CAST(${writtenAs(json)} AS JSON)`,
      'wrong_type',
    ).of(json)
  }
  const size = call.budget.add(sumSizes(Array.from({ length: NAMES_FACTOR }, () => json)))
  return { sql: (column) => `json_keys(CAST(${json.sql(column)} AS JSON))`, type: { ...textType, depth: 1 }, size }
}

export const textFunctions: readonly (readonly [string, OwnFunction])[] = [
  ['split_part', splitPart],
  ['sha256', sha256],
  ['hmac_sha256', hmacSha256],
  ['mask_ip', maskIp],
  ['json_keys', jsonKeys],
]
