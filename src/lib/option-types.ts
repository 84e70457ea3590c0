/** Types of option values: parsed from text, with messages that say what is expected. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { GiB, KiB, MiB } from './bytes.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

export const text = z.string().min(1)
export const secret = (length: number) => z.string().min(length, `must have at least ${length} characters`)
export const choice = <const T extends readonly string[]>(values: T) => z.enum(values, `must be one of ${values.join(', ')}`)
export const url = z.url('must be a URL such as https://inlet.example.com')
export const integer = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`
  return z.string().transform(Number).pipe(z.int(error).min(min, error).max(max, error))
}
export const bytes = (min: number, max: number) => {
  const error = `must be a size from ${formatBytes(min)} to ${formatBytes(max)}, such as 1.5GiB or 500MB`
  return z
    .string()
    .regex(/^\d+(\.\d+)?\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)?$/i, error)
    .transform(parseBytes)
    .pipe(z.int(error).min(min, error).max(max, error))
}
export const address = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, 'must be host:port')
  .transform(parseAddress)
  .refine(({ port }) => port <= 65_535, 'must be host:port with a port up to 65535')
export const endpointUrl = z
  .string()
  .refine(isEndpointUrl, 'must be a URL such as https://s3.example.com:9000, without user, query and fragment')
export const database = z
  .string()
  .refine(isDatabase, 'must be postgres://user:password@host:5432/name, or the path of an SQLite file')
export const proxies = z
  .string()
  .refine((list) => list.split(',').every(isNetwork), 'must be IP addresses or networks separated by commas')
export const optional = <T>(type: z.ZodType<T, string>) =>
  z.string().transform((value, context): T | null => {
    if (value === '') return null
    const parsed = type.safeParse(value)
    if (parsed.success) return parsed.data
    for (const issue of parsed.error.issues) context.addIssue({ code: 'custom', message: issue.message })
    return z.NEVER
  })

function isEndpointUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}${url.hash}` === ''
}

function isDatabase(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text) ? URL.canParse(text) : !/^[a-z][a-z0-9+.-]*:\/\//i.test(text)
}

function isNetwork(text: string): boolean {
  const [address = '', bits] = text.trim().split('/')
  const version = isIP(address)
  if (bits === undefined) return version !== 0
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : version === 6 ? 128 : -1)
}

function parseAddress(value: string): ListenAddress {
  const at = value.lastIndexOf(':')
  return { host: value.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(value.slice(at + 1)) }
}

function formatBytes(value: number): string {
  const [unit, size] = value >= GiB ? ['GiB', GiB] : value >= MiB ? ['MiB', MiB] : value >= KiB ? ['KiB', KiB] : ['B', 1]
  return `${value / Number(size)}${unit}`
}

function parseBytes(value: string): number {
  const [, amount = '0', unit = 'B'] = /^([\d.]+)\s*([A-Za-z]*)$/.exec(value) ?? []
  const powers = ['', 'K', 'M', 'G', 'T']
  const power = powers.indexOf(unit.replace(/i?B$/i, '').toUpperCase())
  return Math.round(Number(amount) * (/iB$/i.test(unit) ? 1024 : 1000) ** Math.max(power, 0))
}
