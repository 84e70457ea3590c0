/** The body of a request, from a file and from options. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { MiB } from '#lib/bytes.ts'
import { UserError } from '#lib/user-error.ts'
import { UsageError } from '../terminal/context.ts'
import { parseYaml } from './yaml.ts'

export type FieldFlags = { readonly file?: string; readonly set?: readonly string[] }
export type Fields = Record<string, unknown>

const bytesMax = 4 * MiB

/** Reads the fields of the file, which is YAML or JSON, and then those of `--set`. Throws a UserError. */
export async function readFields({ file, set = [] }: FieldFlags): Promise<Fields> {
  const fields = file === undefined ? {} : await parseFile(file)
  const given: string[] = []
  for (const each of set) {
    const at = each.indexOf('=')
    if (at < 1) throw new UsageError(`--set: must be FIELD=VALUE, not ${JSON.stringify(each)}`)
    const path = each.slice(0, at)
    // One of them would be lost.
    const lost = given.find((earlier) => earlier === path || earlier.startsWith(`${path}.`))
    if (lost !== undefined) throw new UsageError(`--set: ${lost} must be given once, and has several values`)
    given.push(path)
    setField(fields, path.split('.'), parseValue(each.slice(at + 1), `--set ${path}`))
  }
  return fields
}

async function parseFile(file: string): Promise<Fields> {
  const content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8').catch(cannotRead)
  if (content.length > bytesMax) throw new UserError(`${file} is larger than ${bytesMax} bytes`)
  const value = parseYaml(content, file)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new UserError(`${file}: must have one object, in YAML or JSON`)
}

function cannotRead(error: Error): never {
  throw new UserError(`cannot read the file: ${error.message}`)
}

/** JSON is taken as such. Anything else is text, so that names need no quotes. */
function parseValue(given: string, where: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(given)
  } catch {
    return given
  }
  // JSON.parse keeps the last of several values of a field. YAML refuses them.
  if (typeof value === 'object' && value !== null) parseYaml(given, where)
  return value
}

function setField(fields: Fields, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    fields[name] = value
    return
  }
  const inner = fields[name]
  const into = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as Fields) : {}
  fields[name] = into
  setField(into, rest, value)
}
