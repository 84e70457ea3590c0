/**
 * The JSONPath subset of a column: `$.a.b`, `$['a']`, `$."a b"`, `$.a[0]`, `$.a[*].b`, the record's envelope at `$$`, and in a view that
 * expands an array, its elements at `$item` and `$parent`.
 *
 * Owns: parsing, and printing for people and for DuckDB. Law: names reach DuckDB in quotes, so that they are always read as names.
 */
export type Step = { readonly key: string } | { readonly index: number } | 'each'

const envelopeFields = ['topic', 'client_id', 'ingested_at', 'protocol', 'content_type', 'address', 'key_name'] as const
export type EnvelopeField = (typeof envelopeFields)[number]
/** Other names of fields. */
const aliases: ReadonlyMap<string, EnvelopeField> = new Map([['received_at', 'ingested_at']])
const userProperties = '$$.user_properties'
const headers = '$$.headers'

export type Path =
  | {
      readonly from: 'record'
      readonly steps: readonly Step[]
      readonly hasEach: boolean
      /** An element of the last [*] in which the rest of the path finds nothing is NULL in the list. */
      readonly isAligned?: true
      /** Where it starts, if not at the record: at the element of which the row is, or at the outer element that has it. */
      readonly of?: 'item' | 'parent'
    }
  /** The position of the row's element in its record. */
  | { readonly from: 'item_index' }
  | { readonly from: 'envelope'; readonly field: EnvelopeField }
  /** A user property of an MQTT 5 message. */
  | { readonly from: 'envelope'; readonly field: 'user_property'; readonly name: string }
  /** A header of an HTTP request that its endpoint keeps, by its lower-case name. */
  | { readonly from: 'envelope'; readonly field: 'header'; readonly name: string }

/** The array whose elements are rows: its path in the record, or the path of an outer array and that in each of its elements. */
export type Expand = { readonly steps: readonly Step[]; readonly inner?: readonly Step[] }

/** Names where a path starts: at an element of an expanded array. */
const partName = /^\$(item|parent)(?=$|[.[])/
const itemIndex = '$$.item_index'

export class PathError extends Error {
  override readonly name = 'PathError'
}

const STEPS_MAX = 64
const INDEX_MAX = 2 ** 31 - 1

const bareName = /[^\s.[\]"'*()?@,:$\\]+|[$@][^\s.[\]"'*()?@,:$\\]+/y
const index = /\[\s*(\d{1,10}|\*)\s*\]/y
const quotedName = /"((?:[^"\\]|\\["'\\/])*)"|'((?:[^'\\]|\\["'\\/])*)'/y

/** Parses the text of a path. Throws PathError with a message that describes what to write instead. */
export function parsePath(text: string): Path {
  if (text.startsWith(userProperties))
    return { from: 'envelope', field: 'user_property', name: nameAt(text, userProperties, 'property', 'site') }
  if (text.startsWith(headers)) {
    // Names of headers have no case (RFC 9110 §5.1).
    return { from: 'envelope', field: 'header', name: nameAt(text, headers, 'header', 'x-event').toLowerCase() }
  }
  if (text === itemIndex) return { from: 'item_index' }
  if (text.startsWith('$$')) return envelope(text)
  if (!text.startsWith('$')) throw new PathError('must start with $, such as $.user.id')
  const [start = '$', of] = partName.exec(text) ?? []
  const steps = parseSteps(text, start.length)
  const path = { from: 'record', steps, hasEach: steps.includes('each') } as const
  return of === 'item' || of === 'parent' ? { ...path, of } : path
}

/** Returns the text of a path that `parseExpand` reads, such as `$.items[*]`. */
export function printExpand({ steps, inner }: Expand): string {
  return printPath([...steps, 'each', ...(inner === undefined ? [] : [...inner, 'each' as const])])
}

/** Parses the path of an array whose elements are rows. Throws PathError. */
export function parseExpand(text: string): Expand {
  const path = parsePath(text)
  if (path.from !== 'record' || path.of !== undefined) throw new PathError('must be a path in the record, such as $.items[*]')
  const { steps } = path
  if (steps.at(-1) !== 'each') throw new PathError(`must end with [*], such as ${text}[*]: each element of the array is a row`)
  const [first = 0, second, third] = [...steps.entries()].flatMap(([at, step]) => (step === 'each' ? [at] : []))
  if (third !== undefined)
    throw new PathError('must have at most two [*], such as $.orders[*].items[*]: read deeper arrays as lists or JSON')
  const array = { steps: steps.slice(0, first) }
  return second === undefined ? array : { ...array, inner: steps.slice(first + 1, second) }
}

function parseSteps(text: string, start: number): readonly Step[] {
  const steps: Step[] = []
  let at = start
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  while (at < text.length) {
    const start = at
    if (text[at] === '.') {
      at += 1
      const quoted = take(quotedName)
      const bare = quoted === null ? take(bareName) : null
      if (bare !== null) steps.push({ key: bare[0] })
      else if (quoted !== null) steps.push({ key: unquote(quoted) })
      else
        throw new PathError(
          `expected a name at character ${at + 1}; write names with other characters in quotes, such as $."a b"`,
        )
    } else if (text[at] === '[') {
      const position = take(index)
      if (position !== null) steps.push(position[1] === '*' ? 'each' : { index: Number(position[1]) })
      else {
        at += 1
        const quoted = take(quotedName)
        if (quoted === null || text[at] !== ']') {
          throw new PathError(`expected an index such as [0], [*] or a quoted name at character ${start + 1}`)
        }
        at += 1
        steps.push({ key: unquote(quoted) })
      }
    } else throw new PathError(`expected . or [ at character ${at + 1}`)
  }
  check(steps)
  return steps
}

/**
 * Prints the path for DuckDB: as a JSON pointer if possible, which takes less than half the time of its JSONPath. A pointer cannot tell
 * an index from a name of digits, and has no wildcards.
 */
export function duckDbPath(steps: readonly Step[]): string {
  if (steps.length > 0 && steps.every(isPlainName)) return steps.map(({ key }) => `/${escapePointer(key)}`).join('')
  const parts = steps.map((step) => {
    if (step === 'each') return '[*]'
    if ('index' in step) return `[${step.index}]`
    return `."${step.key.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
  })
  return `$${parts.join('')}`
}

/** Prints the path as people write it. The result may be a path that `parsePath` rejects. */
export function printPath(steps: readonly Step[]): string {
  return `$${steps.map(printStep).join('')}`
}

function printStep(step: Step): string {
  if (step === 'each') return '[*]'
  if ('index' in step) return `[${step.index}]`
  return /^[a-z_][a-z0-9_-]*$/i.test(step.key) ? `.${step.key}` : `['${step.key.replace(/['\\]/g, '\\$&')}']`
}

function isPlainName(step: Step): step is { readonly key: string } {
  return step !== 'each' && 'key' in step && !/^[\d-]/.test(step.key)
}

/** RFC 6901 §3. */
function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function envelope(text: string): Path {
  const name = text.slice('$$.'.length)
  const field = text.startsWith('$$.') ? (envelopeFields.find((known) => known === name) ?? aliases.get(name)) : undefined
  if (field === undefined) {
    const fields = [...envelopeFields, ...aliases.keys()].map((name) => `$$.${name}`).join(', ')
    throw new PathError(`must be one of ${fields}, ${userProperties}.<name>, ${headers}.<name>, ${itemIndex}`)
  }
  return { from: 'envelope', field }
}

/** Returns the only name after the prefix. */
function nameAt(text: string, prefix: string, what: string, example: string): string {
  const steps = parseSteps(text, prefix.length)
  const [step] = steps
  if (step === undefined || step === 'each' || 'index' in step || steps.length > 1) {
    throw new PathError(`must name one ${what}, such as ${prefix}.${example} or ${prefix}."a b"`)
  }
  return step.key
}

function unquote(match: RegExpExecArray): string {
  return (match[1] ?? match[2] ?? '').replace(/\\(.)/g, '$1')
}

function check(steps: readonly Step[]): void {
  const isPointer = steps.every(isPlainName)
  if (steps.length > STEPS_MAX) throw new PathError(`must have at most ${STEPS_MAX} steps`)
  for (const step of steps) {
    if (step === 'each') continue
    if ('index' in step) {
      if (step.index > INDEX_MAX) throw new PathError(`an index must be at most ${INDEX_MAX}`)
    } else if (step.key === '') throw new PathError('a name must not be empty')
    // DuckDB's JSONPath reads * as a wildcard, even in quotes.
    else if (!isPointer && step.key.includes('*')) {
      throw new PathError('a name that contains * cannot be combined with an index, [*] or a name that begins with a digit')
    } else if (step.key.includes('\0') || !step.key.isWellFormed())
      throw new PathError('a name must be well-formed text without NUL')
  }
}
