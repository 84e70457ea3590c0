/**
 * A record as indented lines, each with the path of its value.
 *
 * Law: no number is rounded. They are printed as they were sent.
 */

/** Names, and positions in lists. */
type Step = string | number

export type RecordLine = { readonly text: string; readonly isMarked: boolean }

/** Returns the lines of a JSON text, with those marked that are at a path of a view. Returns undefined for a text that is not JSON. */
export function recordLines(json: string, path: string | null): readonly RecordLine[] | undefined {
  const value = parseExactly(json)
  if (value === undefined) return undefined
  const wanted = path === null ? undefined : stepsOf(path)
  const lines: RecordLine[] = []
  print(value, { at: [], before: '', after: '', indent: '', isMarked: false })
  return lines

  type Place = {
    readonly at: readonly Step[]
    readonly before: string
    readonly after: string
    readonly indent: string
    readonly isMarked: boolean
  }

  function print(each: unknown, place: Place): void {
    const isMarked = place.isMarked || (wanted !== undefined && wanted.length > 0 && isAt(place.at, wanted))
    const add = (text: string) => lines.push({ text: place.indent + text, isMarked })
    const children = childrenOf(each)
    if (children === undefined || children.length === 0) {
      add(`${place.before}${textOf(each)}${place.after}`)
      return
    }
    const [open, close] = Array.isArray(each) ? ['[', ']'] : ['{', '}']
    add(`${place.before}${open}`)
    for (const [index, [step, child]] of children.entries()) {
      const before = typeof step === 'number' ? '' : `${JSON.stringify(step)}: `
      const after = index < children.length - 1 ? ',' : ''
      print(child, { at: [...place.at, step], before, after, indent: `${place.indent}  `, isMarked })
    }
    add(`${close}${place.after}`)
  }
}

function childrenOf(value: unknown): readonly (readonly [Step, unknown])[] | undefined {
  if (value instanceof ExactNumber || typeof value !== 'object' || value === null) return undefined
  return Array.isArray(value) ? value.map((each, index) => [index, each] as const) : Object.entries(value)
}

function textOf(value: unknown): string {
  return value instanceof ExactNumber ? value.source : JSON.stringify(value)
}

class ExactNumber {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

/** The compiler's library does not have the third argument yet. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

function parseExactly(json: string): unknown {
  const keepNumber: Reviver = (_, value, context) =>
    typeof value === 'number' ? new ExactNumber(context?.source ?? String(value)) : value
  try {
    return JSON.parse(json, keepNumber as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

const everyItem = '*'
const stepPattern = /\.([^.["]+)|\."((?:[^"\\]|\\.)*)"|\['((?:[^'\\]|\\.)*)'\]|\[(\d+|\*)\]/g

/** Returns the steps of a path of a view, such as `$.a."b c"[*]`; of one into the envelope, none. */
function stepsOf(path: string): readonly Step[] | undefined {
  if (!path.startsWith('$') || path.startsWith('$$')) return undefined
  return [...path.matchAll(stepPattern)].map(([, plain, double, single, index]): Step => {
    if (index !== undefined) return index === everyItem ? everyItem : Number(index)
    return plain ?? (double ?? single ?? '').replace(/\\(.)/g, '$1')
  })
}

function isAt(at: readonly Step[], wanted: readonly Step[]): boolean {
  return (
    at.length === wanted.length &&
    wanted.every((step, index) => step === at[index] || (step === everyItem && typeof at[index] === 'number'))
  )
}
