/** What the two databases say when they refuse something, in one language. */
import { AppError } from '#errors.ts'
import { BadTextError } from './sqlite.ts'

export type Refusal = 'unique' | 'reference' | 'collision' | 'bad_text'

/** https://www.postgresql.org/docs/15/errcodes-appendix.html */
const postgresStates: Readonly<Record<string, Refusal>> = {
  '23505': 'unique',
  '23503': 'reference',
  '23001': 'reference',
  '40001': 'collision',
  '40P01': 'collision',
  '22021': 'bad_text',
}

/** https://www.sqlite.org/rescode.html: extended codes, and of BUSY and LOCKED every kind. */
const sqliteCodes: Readonly<Record<number, Refusal>> = { 2067: 'unique', 1555: 'unique', 787: 'reference', 1811: 'reference' }
const sqliteBusy = 5
const sqliteLocked = 6

/** Undefined for an error that is none of these. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof BadTextError) return 'bad_text'
  if (!(error instanceof Error)) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') {
    const primary = error.errcode & 0xff
    return primary === sqliteBusy || primary === sqliteLocked ? 'collision' : sqliteCodes[error.errcode]
  }
  return 'code' in error && typeof error.code === 'string' ? postgresStates[error.code] : undefined
}

export type Explanations = Partial<Readonly<Record<'unique' | 'reference', AppError>>>

/**
 * Awaits `work`. Where the database refuses it for one of the reasons in `explanations`, that error is thrown in its place.
 * A text that no database keeps is the client's error wherever it comes from.
 */
export async function explain<T>(work: Promise<T>, explanations: Explanations = {}): Promise<T> {
  try {
    return await work
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === 'bad_text') throw new AppError('validation_error', 'a text has the character U+0000', { cause: error })
    const explanation = refusal === 'unique' || refusal === 'reference' ? explanations[refusal] : undefined
    if (explanation === undefined) throw error
    const { code, message, errors } = explanation
    throw new AppError(code, message, { cause: error, ...(errors === undefined ? {} : { errors }) })
  }
}
