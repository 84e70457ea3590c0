/**
 * Functions that read parts of URLs.
 *
 * Law: text in which programs disagree about the host is not a URL: its host has no spaces, backslashes or other delimiters. RE2 matches each
 * pattern in time linear in the text.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { definitionLimits } from '#model/limits.ts'
import { ConditionError, type Part, quoted } from './condition.ts'
import { sumSizes } from './condition-budget.ts'
import { textType } from './filter-types.ts'
import { checkText, computedFrom, type OwnCall, type OwnFunction, takeArguments } from './own-function.ts'
import { patternSize } from './pattern-size.ts'

const scheme = '[A-Za-z][A-Za-z0-9+.-]*://'
const user = '(?:[^/?#\\\\\\x00-\\x20\\x7f]*@)?'
const host = '\\[[0-9A-Fa-f:.]+\\]|[^/?#\\\\\\x00-\\x20\\x7f@:\\[\\]<>^|"`{}]+'
/** At most 65535. */
const port = '(?::0*(?:[0-9]{0,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?'
const authority = `(?:${user}(?:${host})${port})?`
const path = '(?:/[^?#]*)?'

const hostPattern = `^${scheme}${user}(${host})${port}(?:[/?#]|$)`
const pathPattern = `^${scheme}${authority}(${path})(?:[?#]|$)`
const queryPattern = `^${scheme}${authority}${path}(\\?[^#]*)`

function urlHost(call: OwnCall): Part {
  const url = urlArgument(call, 'one URL, such as url_host(page)')
  return matching(call, url, [hostPattern], 3, (value) => `lower(trim(${firstMatch(value, hostPattern)}, '[]'))`)
}

function urlPath(call: OwnCall): Part {
  const url = urlArgument(call, 'one URL, such as url_path(page)')
  const withRoot = (x: string): string => `CASE WHEN ${x} = '' THEN '/' ELSE ${x} END`
  return matching(call, url, [pathPattern], 1, (value) => computedFrom(firstMatch(value, pathPattern), withRoot))
}

function urlParam(call: OwnCall): Part {
  const [url, name] = takeArguments(call, 2, "a URL and a name, such as url_param(page, 'utm_source')") as [Part, Part]
  checkText(call, url)
  if (name.text === undefined || name.text === '') {
    throw new ConditionError(
      `the name of ${quoted(call.name)} must be a text constant that is not empty, such as 'utm_source'`,
    ).of(name)
  }
  const sought = `(?:^\\?|&)(${encodedForms(name.text)}(?:=[^&]*)?)(?:&|$)`
  if (patternSize(sought) > definitionLimits.patternSizeMax) {
    throw new ConditionError(`the name of ${quoted(call.name)} is too long`).of(name)
  }
  return matching(call, url, [queryPattern, sought], 5, (value) => {
    // `name=value` or only `name`. Without a match it is empty.
    const pair = `regexp_extract(${firstMatch(value, queryPattern)}, ${quoteLiteral(sought)}, 1)`
    // Escapes that are not UTF-8 are an error.
    const decoded = `TRY(url_decode(replace(substr(x, strpos(x, '=') + 1), '+', ' ')))`
    return computedFrom(pair, (x) => `CASE WHEN contains(${x}, '=') THEN ${decoded} WHEN ${x} <> '' THEN '' END`)
  })
}

function urlArgument(call: OwnCall, usage: string): Part {
  const [url] = takeArguments(call, 1, usage) as readonly [Part]
  checkText(call, url)
  return url
}

/** Returns a part that matches patterns with a text, and makes `copies` texts of its size. */
function matching(call: OwnCall, text: Part, patterns: readonly string[], copies: number, make: (value: string) => string): Part {
  for (const pattern of patterns) call.budget.patterns.countFunction(call.name, patternSize(pattern), text.size)
  call.budget.add(sumSizes(Array.from({ length: copies }, () => text)))
  return { sql: (column) => make(text.sql(column)), type: textType, size: text.size }
}

/** SQL for what the only group of an anchored pattern matches, or NULL. */
function firstMatch(text: string, pattern: string): string {
  return `regexp_extract_all(${text}, ${quoteLiteral(pattern)}, 1)[1]`
}

/** Returns a pattern for a name in a query, in which each byte may be escaped. */
function encodedForms(name: string): string {
  return [...name]
    .map((character) => {
      const plain =
        character === ' ' ? '\\+| ' : '&=#+%'.includes(character) ? '' : character.replace(/[\\^$.|?*()[\]{}]/g, '\\$&')
      const bytes = [...Buffer.from(character)].map((byte) => `%${hexForms(byte >> 4)}${hexForms(byte & 15)}`).join('')
      return plain === '' ? bytes : `(?:${plain}|${bytes})`
    })
    .join('')
}

function hexForms(digit: number): string {
  const lower = digit.toString(16)
  return digit < 10 ? lower : `[${lower}${lower.toUpperCase()}]`
}

export const urlFunctions: readonly (readonly [string, OwnFunction])[] = [
  ['url_host', urlHost],
  ['url_path', urlPath],
  ['url_param', urlParam],
]
