/**
 * Reads the JSON of a request.
 *
 * Law: the body is hostile. Its parts and their nesting are bounded before it is parsed, so that parsing and checking take time and memory
 * in proportion to its bytes.
 */
import { isUtf8 } from 'node:buffer'
import { randomInt } from 'node:crypto'
import type { z } from 'zod'
import { AppError, type FieldError } from '#errors.ts'
import { explainJsonError } from '#lib/json.ts'
import { parseFields, summarize } from './field-errors.ts'
import { bodyLimits } from './limits.ts'

export type BodyRules = {
  readonly partsMax?: number
  /** For bodies that our own programs print: the last of several values counts. */
  readonly mayRepeatFields?: boolean
}

/** Returns undefined for an empty body. Throws validation_error. */
export function parseJsonBody(
  bytes: Uint8Array,
  { partsMax = bodyLimits.partsMax, mayRepeatFields = false }: BodyRules = {},
): unknown {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw malformed('must be UTF-8')
  const excess = findExcess(bytes, partsMax)
  if (excess !== undefined) throw malformed(excess)
  const value = parse(bytes)
  const repeated = mayRepeatFields ? undefined : findRepeatedField(bytes)
  if (repeated !== undefined) {
    const message = 'must be given once, and has several values'
    throw new AppError('validation_error', `${repeated}: ${message}`, { errors: [{ path: repeated, message }] })
  }
  // Fastify passes on a missing body as null, which an operation with an optional body accepts.
  if (value === null) throw malformed('must be an object, and is null')
  return value
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  } catch (error) {
    throw malformed(`is not valid JSON: ${explainJsonError(error)}`)
  }
}

/** Returns the checked body, or another part of a request. Throws validation_error. */
export function requireValid<T>(schema: z.ZodType<T>, body: unknown): T {
  const { value, errors, omitted } = parseFields(schema, body)
  if (errors === undefined) return value
  const named = errors.map(nameBody)
  throw new AppError('validation_error', summarize(named, omitted), { errors: named, errorsOmitted: omitted })
}

/** Returns why the JSON is too large; undefined if it is not. Counts at least one part for each value. */
function findExcess(bytes: Uint8Array, partsMax: number): string | undefined {
  let parts = 1
  let depth = 0
  // JSON.parse takes far longer for names that all differ. Those that share a slot count once.
  const names = new Uint8Array(bytes.length > bodyLimits.namesMax ? nameSlots : 1)
  let differing = 0
  // Commas in each open object: an object with very many fields takes far longer to parse than a list of the same size.
  const fields = new Float64Array(bodyLimits.nestingMax + 1)
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case quote: {
        const end = endOfText(bytes, at)
        if (bytes[end + 1] === colon || isSpaceBefore(bytes, end + 1, colon)) {
          const slot = hash(bytes, at, end) % names.length
          if (names[slot] === 0) differing += 1
          names[slot] = 1
          if (differing > bodyLimits.namesMax)
            return `has too many different field names: at most ${bodyLimits.namesMax} are allowed`
        }
        at = end
        break
      }
      case openBracket:
      case openBrace:
        parts += 1
        depth += 1
        if (depth > bodyLimits.nestingMax) return `is nested too deep: at most ${bodyLimits.nestingMax} levels are allowed`
        // Entries of a list are counted as parts only.
        fields[depth] = bytes[at] === openBrace ? 1 : Number.MIN_SAFE_INTEGER
        break
      case closeBracket:
      case closeBrace:
        depth -= 1
        break
      case comma:
        parts += 1
        fields[depth] = (fields[depth] ?? 0) + 1
        if ((fields[depth] ?? 0) > bodyLimits.fieldsMax)
          return `has an object with too many fields: at most ${bodyLimits.fieldsMax} are allowed`
        break
    }
    if (parts > partsMax) return `has too many parts: at most ${partsMax} values are allowed`
  }
  return undefined
}

/** Returns the path of the first field that its object has twice. The bytes must be valid JSON: JSON.parse would keep the last value only. */
function findRepeatedField(bytes: Uint8Array): string | undefined {
  // Null for lists, whose part in the path is the index.
  const open: { readonly names: Set<string> | null; part: string | number }[] = []
  for (let at = 0; at < bytes.length; at += 1) {
    const here = open.at(-1)
    switch (bytes[at]) {
      case quote: {
        const end = endOfText(bytes, at)
        if (here?.names != null && (bytes[end + 1] === colon || isSpaceBefore(bytes, end + 1, colon))) {
          here.part = String(JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + at, end + 1 - at).toString()))
          if (here.names.has(here.part)) return open.map(({ part }) => part).join('.')
          here.names.add(here.part)
        }
        at = end
        break
      }
      case openBrace:
        open.push({ names: new Set(), part: '' })
        break
      case openBracket:
        open.push({ names: null, part: 0 })
        break
      case closeBrace:
      case closeBracket:
        open.pop()
        break
      case comma:
        if (typeof here?.part === 'number') here.part += 1
        break
    }
  }
  return undefined
}

const [quote, backslash, comma, colon = 0, openBracket, closeBracket, openBrace, closeBrace] = Buffer.from('"\\,:[]{}')

/** A large prime: few names share a slot by chance. */
const nameSlots = 262_139
/** Random, so that nobody can choose names that share a slot. */
const seed = randomInt(1 << 30)

function hash(bytes: Uint8Array, start: number, end: number): number {
  let sum = seed
  for (let at = start + 1; at < end; at += 1) sum = Math.imul(sum ^ (bytes[at] ?? 0), 0x01000193 + (seed & 0xfff0)) ^ (sum >>> 15)
  return sum >>> 0
}

/** Returns whether the next byte that is not white space is `wanted`. */
function isSpaceBefore(bytes: Uint8Array, start: number, wanted: number): boolean {
  let at = start
  while ([0x20, 0x09, 0x0a, 0x0d].includes(bytes[at] ?? 0)) at += 1
  return at > start && bytes[at] === wanted
}

/** Returns the position of the quotation mark that ends the text. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

/** An empty path stands for the whole body. */
function nameBody(error: FieldError): FieldError {
  return error.path === '' ? { ...error, message: `the body ${error.message}` } : error
}

function malformed(what: string): AppError {
  const message = `the body ${what}`
  return new AppError('validation_error', message, { errors: [{ path: '', message }] })
}
