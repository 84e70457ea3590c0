/**
 * Types of option values: parsed from text, with messages that say what is expected.
 *
 * The supervisor reads the configuration too, and stays small, so this uses no library of schemas.
 */
import { isIP } from 'node:net'
import { GiB, KiB, MiB } from './bytes.ts'
import { isDecimalInteger } from './decimal-integer.ts'
import { findAddressFault } from './ip-addresses.ts'
import { isKeyList } from './keyring.ts'
import { isOrigin } from './origin.ts'
import { splitPostgresUrl } from './postgres-urls.ts'
import { UserError } from './user-error.ts'

/** Returns the value. Throws OptionError, whose message says what the text must be. */
export type OptionType<T> = (text: string) => T

/** An environment variable of the configuration. `help` is its line in the documentation. */
export type Option<T> = { readonly env: string; readonly help: string; readonly type: OptionType<T>; readonly default: string }

export function option<T>(env: string, fallback: string, type: OptionType<T>, help: string): Option<T> {
  return { env, default: fallback, type, help }
}

export class OptionError extends UserError {
  override readonly name = 'OptionError'
}

export type ListenAddress = {
  readonly host: string
  readonly port: number
  /** Whether other processes that say so too may listen there. */
  readonly reusePort?: boolean
}

export const text: OptionType<string> = (value) => value
export const matching = (pattern: RegExp, expected: string) => checked((value) => pattern.test(value), expected)
export const secret = (length: number) => checked((value) => value.length >= length, `must have at least ${length} characters`)
export const secretKeys = checked(
  isKeyList,
  'must be 32 random bytes in base64 (openssl rand -base64 32); several are separated by commas',
)
export const url = checked(URL.canParse, 'must be a URL such as https://inlet.example.com')
export const serviceUrl = checked(
  isServiceUrl,
  'must be a URL such as https://s3.example.com:9000, without user, query and fragment',
)
export const database = checked(isDatabase, 'must be postgres://user:password@host:5432/name, or the path of an SQLite file')
export const proxies = checked((list) => list.split(',').every(isNetwork), 'must be IP addresses or networks separated by commas')

/** Buckets, each with or without a prefix, separated by commas. Whoever uses them checks the names. */
export const buckets: OptionType<readonly string[]> = (list) => {
  const parts = list.split(',').map((part) => part.trim())
  if (parts.every((part) => /^[a-z0-9.-]+(\/[^/]+)*\/?$/.test(part))) return parts
  throw new OptionError('must be buckets separated by commas, each with or without a prefix, such as lake,archive/raw')
}

/** Origins of web pages, separated by commas, or `*` for all. */
export const origins: OptionType<readonly string[]> = (list) => {
  const parts = list.split(',').map((part) => part.trim())
  if (list.trim() === '*' || parts.every(isOrigin)) return parts
  throw new OptionError(
    'must be * or origins as browsers send them, separated by commas, in lower case, without a path or the default port, such as https://app.example.com',
  )
}

/** Pairs as in the header `baggage`: `name=value,name=value`, percent-encoded. */
export const headerList: OptionType<Readonly<Record<string, string>>> = (list) => {
  const pairs = list.split(',').filter((pair) => pair.trim() !== '')
  const expected = new OptionError('must be headers such as authorization=Bearer%20secret,x-tenant=7')
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name = '', value = ''] = /^\s*([\w-]+)\s*=\s*([!-~]*)\s*$/.exec(pair) ?? []
      if (name === '') throw expected
      try {
        return [name.toLowerCase(), decodeURIComponent(value)]
      } catch {
        throw expected
      }
    }),
  )
}

/** From 0 to 1. */
export const ratio: OptionType<number> = (value) => {
  const number = Number(value)
  if (/^\d+(\.\d+)?$/.test(value) && number >= 0 && number <= 1) return number
  throw new OptionError('must be a number from 0 to 1, such as 0.01')
}

/** IP addresses that clients can connect to, separated by commas: at most `max` of each version. */
export function addresses(max: number): OptionType<readonly string[]> {
  return (list) => {
    const parts = list.split(',').map((part) => part.trim())
    // One with a zone, such as fe80::1%eth0, means something on this machine only.
    if (!parts.every((part) => isIP(part) !== 0 && !part.includes('%')))
      throw new OptionError('must be IP addresses separated by commas')
    for (const part of parts) {
      const fault = findAddressFault(part)
      if (fault !== undefined) throw new OptionError(`must be addresses that clients can connect to: ${part} is ${fault}`)
    }
    if ([4, 6].some((version) => parts.filter((part) => isIP(part) === version).length > max))
      throw new OptionError(`must be at most ${max} IPv4 and ${max} IPv6 addresses`)
    return parts
  }
}

/** A user by its id, and its group, which has the same id if not given. */
export const user: OptionType<{ readonly uid: number; readonly gid: number }> = (value) => {
  const [, uid, gid = uid] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(value) ?? []
  if (uid === undefined) throw new OptionError('must be the id of a user, or the ids of a user and a group such as 1001:1001')
  return { uid: Number(uid), gid: Number(gid) }
}

export function choice<const T extends string>(values: readonly T[]): OptionType<T> {
  return (value) => {
    const found = values.find((each) => each === value)
    if (found === undefined) throw new OptionError(`must be one of ${values.join(', ')}`)
    return found
  }
}

export function integer(min: number, max: number): OptionType<number> {
  return inRange(
    (text) => (isDecimalInteger(text) ? Number(text) : Number.NaN),
    min,
    max,
    `must be a whole number from ${min} to ${max}`,
  )
}

/** A duration, in seconds: `30s`, `5m` or `1h`. */
export function duration(secondsMin: number, secondsMax: number, example: string): OptionType<number> {
  return (value) => {
    const [, count = '', unit = 's'] = /^(\d{1,6})([smh])$/.exec(value) ?? []
    const seconds = Number(count) * (unit === 's' ? 1 : unit === 'm' ? 60 : 3600)
    if (seconds >= secondsMin && seconds <= secondsMax) return seconds
    throw new OptionError(`must be a duration from ${secondsMin} s to ${secondsMax / 3600} h, such as ${example}`)
  }
}

export function bytes(min: number, max: number): OptionType<number> {
  return inRange(parseBytes, min, max, `must be a size from ${formatBytes(min)} to ${formatBytes(max)}, such as 1.5GiB or 500MB`)
}

export const address: OptionType<ListenAddress> = (value) => {
  if (!/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/.test(value)) throw new OptionError('must be host:port')
  const at = value.lastIndexOf(':')
  const port = Number(value.slice(at + 1))
  if (port > 65_535) throw new OptionError('must be host:port with a port up to 65535')
  return { host: value.slice(0, at).replace(/^\[|\]$/g, ''), port }
}

/** Returns where others reach a listener: one on all addresses of this machine at the first of its own. */
export function reachableAt({ host, port }: ListenAddress, [first = host]: readonly string[]): ListenAddress {
  return { host: host === '0.0.0.0' || host === '::' ? first : host, port }
}

/** Null if the text is empty. */
export function optional<T>(type: OptionType<T>): OptionType<T | null> {
  return (value) => (value === '' ? null : type(value))
}

function checked(isValid: (value: string) => boolean, expected: string): OptionType<string> {
  return (value) => {
    if (!isValid(value)) throw new OptionError(expected)
    return value
  }
}

function inRange(parse: (value: string) => number, min: number, max: number, expected: string): OptionType<number> {
  return (value) => {
    const number = parse(value)
    if (!(Number.isInteger(number) && number >= min && number <= max)) throw new OptionError(expected)
    return number
  }
}

function isServiceUrl(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}${url.hash}` === ''
}

function isDatabase(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text)
    ? splitPostgresUrl(text).every((url) => URL.canParse(url))
    : !/^[a-z][a-z0-9+.-]*:\/\//i.test(text)
}

function isNetwork(text: string): boolean {
  const [address = '', bits] = text.trim().split('/')
  const version = isIP(address)
  if (bits === undefined) return version !== 0
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : version === 6 ? 128 : -1)
}

function formatBytes(value: number): string {
  const [unit, size] = value >= GiB ? ['GiB', GiB] : value >= MiB ? ['MiB', MiB] : value >= KiB ? ['KiB', KiB] : ['B', 1]
  return `${value / Number(size)}${unit}`
}

/** Returns NaN if the text is not a size. */
function parseBytes(value: string): number {
  const [, amount, unit = 'B'] = /^(\d+(?:\.\d+)?)\s*(B|[KMGT]i?B)?$/i.exec(value) ?? []
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(unit.replace(/i?B$/i, '').toUpperCase())
  return Math.round(Number(amount) * (/iB$/i.test(unit) ? 1024 : 1000) ** power)
}
