/** Options and arguments of commands. */
import { isDecimalInteger } from '#lib/decimal-integer.ts'

type Parse<T> = (text: string) => T

/** An option without a value. */
export function flag(brief: string) {
  return { kind: 'boolean', default: false, withNegated: false, brief } as const
}

/** The option of every command that prints data. */
export const json = flag('print JSON')

export function required<T = string>(brief: string, placeholder: string, parse = String as unknown as Parse<T>) {
  return { kind: 'parsed', parse, brief, placeholder } as const
}

export function optional<T = string>(brief: string, placeholder: string, parse?: Parse<T>) {
  return { ...required(brief, placeholder, parse), optional: true } as const
}

export function withDefault<T = string>(text: string, brief: string, placeholder: string, parse?: Parse<T>) {
  return { ...required(brief, placeholder, parse), default: text } as const
}

export function oneArgument<T = string>(brief: string, placeholder: string, parse = String as unknown as Parse<T>) {
  return { kind: 'tuple', parameters: [{ parse, brief, placeholder }] } as const
}

/** Parses an id: accepted in any case, stored in lower case. */
export function parseId(text: string): string {
  return text.toLowerCase()
}

/** Returns a parser of whole numbers. */
export function integer(min: number, max: number): Parse<number> {
  return (text) => {
    const value = Number(text)
    if (isDecimalInteger(text) && Number.isInteger(value) && value >= min && value <= max) return value
    throw new Error(`must be a whole number from ${min} to ${max}`)
  }
}
