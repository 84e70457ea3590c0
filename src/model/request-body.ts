/**
 * Reads the JSON of a request.
 *
 * Law: the body is hostile. Its parts and their nesting are bounded before it is parsed, so that parsing and checking take time and memory
 * in proportion to its bytes.
 */
import { isUtf8 } from 'node:buffer'
import type { z } from 'zod'
import { AppError, type FieldError } from '#errors.ts'
import { explainJsonError } from '#lib/json.ts'
import { parseFields, summarize } from './field-errors.ts'
import { bodyLimits } from './limits.ts'

/** Returns undefined for an empty body. Throws validation_error. `partsMax` is for bodies that nodes send. */
export function parseJsonBody(bytes: Uint8Array, { partsMax = bodyLimits.partsMax }: { partsMax?: number } = {}): unknown {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw malformed('must be UTF-8')
  const excess = findExcess(bytes, partsMax)
  if (excess !== undefined) throw malformed(excess)
  const value = parse(bytes)
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
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case quote:
        at = endOfText(bytes, at)
        break
      case openBracket:
      case openBrace:
        parts += 1
        depth += 1
        if (depth > bodyLimits.nestingMax) return `is nested too deep: at most ${bodyLimits.nestingMax} levels are allowed`
        break
      case closeBracket:
      case closeBrace:
        depth -= 1
        break
      case comma:
        parts += 1
        break
    }
    if (parts > partsMax) return `has too many parts: at most ${partsMax} values are allowed`
  }
  return undefined
}

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = Buffer.from('"\\,[]{}')

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
