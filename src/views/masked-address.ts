/**
 * SQL for an IP address without its end: the last octet of IPv4 and the last 80 bits of IPv6 are zero.
 *
 * Law: it is the canonical text of RFC 5952, or NULL if the text is not an address. IPv4 in IPv6 (`::ffff:…`) is masked as IPv4.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { computedFrom } from './own-function.ts'

/** The longest address: six groups and four octets. */
const ADDRESS_BYTES_MAX = 45

const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const ipv4 = `(?:${octet}\\.){3}${octet}`
const groups = '[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*'
const allGroups = '(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}'

/** SQL for the masked address of a text. */
export function maskedAddress(text: string): string {
  const ipv6 = computedFrom(withoutOctets('x'), (address) => computedFrom(withAllGroups(address), maskedGroups))
  return computedFrom(text, (x) =>
    `CASE WHEN strlen(${x}) > ${ADDRESS_BYTES_MAX} THEN NULL
      WHEN ${isLike(x, ipv4)} THEN regexp_extract(${x}, '^.*\\.') || '0'
      WHEN contains(${x}, ':') THEN ${ipv6} END`.replace(/\s+/g, ' '),
  )
}

/** SQL for IPv6 in lower case, in which octets at the end are two groups. */
function withoutOctets(x: string): string {
  const number = (index: number) => `TRY_CAST(x[${index}] AS INTEGER)`
  const pair = (first: number) => `${number(first)} * 256 + ${number(first + 1)}`
  const inHex = computedFrom(
    `string_split(regexp_extract(${x}, '[0-9.]+$'), '.')`,
    () => `format('{:x}:{:x}', ${pair(1)}, ${pair(3)})`,
  )
  const isMixed = isLike(x, `[0-9A-Fa-f:]*:${ipv4}`)
  return `lower(CASE WHEN ${isMixed} THEN regexp_extract(${x}, '^.*:') || ${inHex} ELSE ${x} END)`
}

/** SQL for IPv6 with eight groups without leading zeros; something else, or NULL, if the text is not an address. */
function withAllGroups(x: string): string {
  const missing = `greatest(1, 8 - len(regexp_extract_all(${x}, '[0-9a-f]+')))`
  const zeros = `':' || left('0:0:0:0:0:0:0:0:', 2 * ${missing})`
  const filled = `trim(replace(${x}, '::', ${zeros}), ':')`
  const plain = `regexp_replace(${filled}, '(^|:)0+([0-9a-f])', '\\1\\2', 'g')`
  return `CASE WHEN ${isLike(x, `(?:${groups})?(?:::(?:${groups})?)?`)} THEN ${plain} END`
}

function maskedGroups(x: string): string {
  const number = (group: number) => `TRY_CAST('0x' || string_split(${x}, ':')[${group}] AS INTEGER)`
  const octets = `format('::ffff:{}.{}.{}.0', ${number(7)} // 256, ${number(7)} % 256, ${number(8)} // 256)`
  const network = `regexp_extract(${x}, '^[0-9a-f]+:[0-9a-f]+:[0-9a-f]+')`
  return `CASE WHEN NOT ${isLike(x, allGroups)} THEN NULL
    WHEN starts_with(${x}, '0:0:0:0:0:ffff:') THEN ${octets}
    ELSE regexp_replace(${network}, '^0(:0)*$|(:0)+$', '') || '::' END`
}

function isLike(x: string, pattern: string): string {
  return `regexp_full_match(${x}, ${quoteLiteral(pattern)})`
}
