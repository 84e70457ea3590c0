import { z } from 'zod'

/** A text of one line that people give a thing: no control characters, which no log, file name or database column wants. */
export const lineOfText = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not have control characters')
    .refine(isWellFormed, notWellFormed)

/** As `lineOfText`, and it may have tabs and line breaks. */
export const paragraphs = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    .regex(/^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$/, 'must not have control characters but tabs and line breaks')
    .refine(isWellFormed, notWellFormed)

const notWellFormed = 'must be well-formed Unicode'

function isWellFormed(text: string): boolean {
  return text.isWellFormed()
}
