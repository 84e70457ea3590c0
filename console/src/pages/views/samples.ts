/** Records that people paste: one JSON document, a list of them, or one per line. */

/** Returns each record as the text that a client would send. */
export function splitSamples(text: string): readonly string[] {
  const whole = exact(text)
  if (Array.isArray(whole)) return whole.map((each) => JSON.stringify(each))
  if (whole !== undefined) return [text.trim()]
  return text.split('\n').filter((line) => line.trim() !== '')
}

/** Returns the text in which each record is a line. JSON has line breaks only between its parts, where a space does as well. */
export function joinSamples(records: readonly string[]): string {
  return records.map((record) => `${record.trim().replace(/\s*\n\s*/g, ' ')}\n`).join('')
}

/** Parses JSON so that printing it again changes no number: a double would round long ones. Returns undefined if it is not JSON. */
function exact(text: string): unknown {
  const { parse, rawJSON } = JSON as ExactJson
  try {
    return parse(text, (_, value, context) =>
      typeof value === 'number' && rawJSON !== undefined && context?.source !== undefined ? rawJSON(context.source) : value,
    )
  } catch {
    return undefined
  }
}

/** The compiler's library does not have these yet, nor do older browsers. */
type ExactJson = {
  readonly parse: (
    text: string,
    reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown,
  ) => unknown
  readonly rawJSON?: (text: string) => unknown
}

export type SamplePath = { readonly path: string; readonly kind: string }

const depthMax = 8
const pathsMax = 500

/** Returns the paths of all values in the samples, each with the kind of its first value. */
export function pathsOf(samples: readonly string[]): readonly SamplePath[] {
  const found = new Map<string, string>()
  for (const sample of samples) {
    try {
      collect(JSON.parse(sample), '$', 0, found)
    } catch {
      // Not JSON: the preview says so.
    }
  }
  return [...found].map(([path, kind]) => ({ path, kind }))
}

function collect(value: unknown, path: string, depth: number, found: Map<string, string>): void {
  if (value === null || found.size >= pathsMax) return
  if (path !== '$' && !found.has(path)) found.set(path, kindOf(value))
  if (typeof value !== 'object' || depth >= depthMax) return
  if (Array.isArray(value)) for (const each of value) collect(each, `${path}[*]`, depth + 1, found)
  else for (const [name, each] of Object.entries(value)) collect(each, path + step(name), depth + 1, found)
}

function step(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `."${name.replace(/["\\]/g, '\\$&')}"`
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value
}
