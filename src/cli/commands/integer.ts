import { isDecimalInteger } from '#lib/decimal-integer.ts'

/** Returns a parser of whole numbers on the command line. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (isDecimalInteger(text) && Number.isInteger(value) && value >= min && value <= max) return value
    throw new Error(`must be a whole number from ${min} to ${max}`)
  }
}
