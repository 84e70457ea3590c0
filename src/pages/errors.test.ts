import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { errorTexts } from '#error-texts.ts'
import { AppError, type ErrorCode, errorTable, toProblem } from '#errors.ts'
import { findErrorPage } from './errors.ts'
import { escapeHtml, prefersJson, toHtml } from './html.ts'

const codes = Object.keys(errorTable) as ErrorCode[]
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

describe.each(codes)('/errors/%s', (code) => {
  const path = new URL(toProblem(new AppError(code, 'why'), 'http://inlet.test').type).pathname

  test('says what the error means and what to do, as HTML, text and JSON', () => {
    const { meaning, remedies } = errorTexts[code]
    for (const accept of [undefined, '*/*', browser]) {
      const page = findErrorPage(path, accept)
      const isHtml = accept === browser
      expect(page?.headers['content-type']).toBe(`text/${isHtml ? 'html' : 'plain'}; charset=utf-8`)
      for (const text of [meaning, ...remedies]) expect(page?.body).toContain(isHtml ? toHtml(text) : text)
      expect(page?.body).toContain(`HTTP ${errorTable[code].status}`)
    }
    const json = findErrorPage(path, 'application/json')
    expect(json?.headers['content-type']).toBe('application/json')
    expect(JSON.parse(json?.body ?? '')).toEqual({ error: code, ...errorTable[code], meaning, remedies })
  })

  test('is written as sentences, with every backtick closed', () => {
    for (const text of [errorTexts[code].meaning, ...errorTexts[code].remedies]) {
      expect(text).toMatch(/^[A-Z`].*\.$/)
      expect(toHtml(text)).not.toContain('`')
    }
  })
})

test.each(['/errors', '/errors/'])('%s links to every error', (path) => {
  const { body = '' } = findErrorPage(path, browser) ?? {}
  const links = [...body.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link)
  const paths = links.map((link) => new URL(link, `http://inlet.test${path}`).pathname)
  expect(paths).toEqual(codes.map((code) => `/errors/${code}`))
  for (const code of codes) expect(findErrorPage(path, '*/*')?.body).toMatch(new RegExp(`^\\d{3}  ${code} +\\w`, 'm'))
  expect(JSON.parse(findErrorPage(path, 'application/json')?.body ?? '').errors).toHaveLength(codes.length)
})

test.each(['/', '/errors//', '/errors/none', '/errors/constructor', '/errors/not_found/'])(
  '%s is none of these pages',
  (path) => {
    expect(findErrorPage(path, browser)).toBeUndefined()
  },
)

test('a page runs nothing and loads nothing: its policy allows its own style alone', () => {
  const { headers, body = '' } = findErrorPage('/errors/conflict', browser) ?? {}
  const style = /<style>(.*)<\/style>/s.exec(body)?.[1] ?? ''
  const hash = createHash('sha256').update(style).digest('base64')
  expect(headers?.['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}';`)
  expect(body).not.toMatch(/<script|<img|<link|\bsrc=|\bstyle=|url\(/)
})

test.each([
  [undefined, false],
  ['', false],
  ['*/*', false],
  [browser, false],
  ['application/json', true],
  ['application/problem+json, */*', true],
  ['text/html, application/json', false],
])('Accept: %s prefers JSON: %s', (accept, expected) => {
  expect(prefersJson(accept)).toBe(expected)
})

test('text becomes HTML without markup of its own', () => {
  expect(escapeHtml(`<a href="x">'&'</a>`)).toBe('&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;')
  expect(toHtml('send `POST /<id>`')).toBe('send <code>POST /&lt;id&gt;</code>')
})
