/** Classifies the errors of both databases. */
import { AppError } from '#errors.ts'
import { BadTextError } from './sqlite.ts'

export type DatabaseErrorKind = 'unique' | 'reference' | 'collision' | 'bad_text' | 'unavailable'

/** Code of an error about a primary from before a failover (timelines.ts). No SQLSTATE has this form. */
export const olderServerCode = 'older_server'

/** https://www.postgresql.org/docs/15/errcodes-appendix.html */
const postgresStates: Readonly<Record<string, DatabaseErrorKind>> = {
  '23505': 'unique',
  '23503': 'reference',
  '23001': 'reference',
  '40001': 'collision',
  '40P01': 'collision',
  '22021': 'bad_text',
  '25P03': 'unavailable',
  '25006': 'unavailable',
  '53100': 'unavailable',
  '53200': 'unavailable',
  '53300': 'unavailable',
  '55P03': 'unavailable',
  '57014': 'unavailable',
  '57P01': 'unavailable',
  '57P02': 'unavailable',
  '57P03': 'unavailable',
  '57P05': 'unavailable',
  [olderServerCode]: 'unavailable',
}

/** Connection errors of Postgres: by system code, or by the message of `pg` if there is no code. */
const connectionCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
])
const connectionMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Query read timeout)/

/** Extended codes from https://www.sqlite.org/rescode.html. BUSY and LOCKED match by their primary code. */
const sqliteCodes: Readonly<Record<number, DatabaseErrorKind>> = {
  2067: 'unique',
  1555: 'unique',
  787: 'reference',
  1811: 'reference',
}
const sqliteBusy = 5
const sqliteLocked = 6
/** NOMEM, READONLY, IOERR, FULL and CANTOPEN: the operator has to act, and then the same statement succeeds. */
const sqliteUnavailable: ReadonlySet<number> = new Set([7, 8, 10, 13, 14])

/** Classifies an error; undefined if it is none of these kinds. `unavailable` and `collision` are transient. */
export function databaseErrorKind(error: unknown): DatabaseErrorKind | undefined {
  if (error instanceof BadTextError) return 'bad_text'
  if (!(error instanceof Error)) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') {
    const primary = error.errcode & 0xff
    if (sqliteUnavailable.has(primary)) return 'unavailable'
    return primary === sqliteBusy || primary === sqliteLocked ? 'collision' : sqliteCodes[error.errcode]
  }
  if ('code' in error && typeof error.code === 'string') {
    // Class 08: connection exceptions.
    if (connectionCodes.has(error.code) || /^08...$/.test(error.code)) return 'unavailable'
    return postgresStates[error.code]
  }
  return connectionMessages.test(error.message) ? 'unavailable' : undefined
}

export type Translations = Partial<Readonly<Record<'unique' | 'reference', AppError>>>

/**
 * Awaits `work`. If the database rejects it for a reason in `translations`, throws that error instead.
 * Text that the database cannot store is always the client's error.
 */
export async function translateErrors<T>(work: Promise<T>, translations: Translations = {}): Promise<T> {
  try {
    return await work
  } catch (error) {
    const kind = databaseErrorKind(error)
    if (kind === 'bad_text')
      throw new AppError('validation_error', 'text must not contain the character U+0000', { cause: error })
    const translation = kind === 'unique' || kind === 'reference' ? translations[kind] : undefined
    if (translation === undefined) throw error
    const { code, message, errors } = translation
    throw new AppError(code, message, { cause: error, ...(errors === undefined ? {} : { errors }) })
  }
}
