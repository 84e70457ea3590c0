import { z } from 'zod'

/** The checks that follow read the whole text. Normalizing takes time that grows with the square of the length. */
const stopIfTooLong = { abort: true } as const

/** A name or other text of one line. Control characters are rejected: they break logs, file names and databases. */
export const lineOfText = (charsMax: number) =>
  z
    .string()
    .max(charsMax, stopIfTooLong)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what the pattern rejects
    .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not contain control characters')
    .refine(isWellFormed, notWellFormed)

/** A name that must not look like another: one Unicode form, and nothing that turns the direction of text. */
export const properName = (charsMax: number) =>
  lineOfText(charsMax)
    .regex(
      /^[^\u0080-\u009f\u2028-\u202e\u2066-\u2069]*$/,
      'must not contain control characters, also none for the direction of text',
    )
    .normalize('NFC')
    .trim()
    .min(1)

/** Like `lineOfText`, but with tabs and line breaks. */
export const paragraphs = (charsMax: number) =>
  z
    .string()
    .max(charsMax, stopIfTooLong)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what the pattern rejects
    .regex(/^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$/, 'must contain no control characters except tabs and line breaks')
    .refine(isWellFormed, notWellFormed)

const notWellFormed = 'must be well-formed Unicode'

function isWellFormed(text: string): boolean {
  return text.isWellFormed()
}
