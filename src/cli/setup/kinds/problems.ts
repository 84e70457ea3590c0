/** Problems of a set-up. All are collected, so that one run shows everything there is to mend. */
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import type { TextPosition } from '#lib/yaml-text.ts'
import { setupLimits } from './limits.ts'

export type Place = { readonly file: string; readonly position?: TextPosition | undefined }

type Problem = {
  readonly place: Place | undefined
  readonly path: string
  readonly message: string
  /** Lines that show the place in an expression. */
  readonly excerpt?: string | undefined
}

export class Problems {
  readonly #list: Problem[] = []

  /** `path` names the field: `endpoints[0].region`. */
  add(place: Place | undefined, path: string, message: string, excerpt?: string): void {
    this.#list.push({ place, path, message, excerpt })
  }

  get count(): number {
    return this.#list.length
  }

  /** Throws a UserError that lists every problem in the order of the files. `consequence` is a sentence. */
  throwIfAny(consequence: string): void {
    if (this.#list.length === 0) return
    const sorted = this.#list.toSorted((a, b) => compare(a.place, b.place))
    const { problemsMax } = setupLimits
    const lines = sorted.slice(0, problemsMax).map(describe)
    const more = sorted.length - lines.length
    const count = sorted.length === 1 ? 'There is a problem' : `There are ${sorted.length} problems`
    throw new UserError(
      `${count} with the set-up. ${consequence}\n\n${lines.join('\n')}${more > 0 ? `\n… and ${more} more` : ''}`,
    )
  }
}

function describe({ place, path, message, excerpt = '' }: Problem): string {
  const shown =
    excerpt === ''
      ? ''
      : `\n${excerpt
          .split('\n')
          .map((line) => `    ${printable(line)}`)
          .join('\n')}`
  return `${place === undefined ? '' : `${printPlace(place)}: `}${path === '' ? '' : `${printable(path)}: `}${printable(message)}${shown}`
}

export function printPlace({ file, position }: Place): string {
  return position === undefined ? printable(file) : `${printable(file)}:${position.line}:${position.column}`
}

function compare(a: Place | undefined, b: Place | undefined): number {
  const [one, other] = [a?.file ?? '', b?.file ?? '']
  if (one !== other) return one < other ? -1 : 1
  const [from, to] = [a?.position, b?.position]
  return (from?.line ?? 0) - (to?.line ?? 0) || (from?.column ?? 0) - (to?.column ?? 0)
}

/** Says that a reference leads to nothing. `known` are the names that it may have meant. */
export function missing(what: string, name: string, known: readonly string[]): string {
  const nearest = nearestName(
    name,
    known.filter((each) => each !== name),
  )
  return `there is no ${what} ${name}: ${nearest === undefined ? 'declare it, or create it first' : `did you mean ${nearest}?`}`
}

/** Characters that move the cursor, break lines, or turn the direction of text, are written as escapes. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}
