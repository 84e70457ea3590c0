/**
 * Small pages for people who open an address of Inlet in a browser, and the same content as JSON or plain text.
 *
 * Law: a page loads nothing and runs nothing. Its links are relative, so that it works behind a proxy that adds a path.
 */
import { createHash } from 'node:crypto'

export type WebPage = { readonly headers: Readonly<Record<string, string>>; readonly body: string }

const style = `
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6776; --paper: #fcfcfa; --line: #e2e5e0; --box: #f1f3ee; --accent: #0a6b5c }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #98a4b0; --paper: #14181d; --line: #2c343d; --box: #1d232a; --accent: #5fcab7 }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
main { max-width: 46rem; margin: 0 auto; padding: 3.5rem 1.25rem }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.25; overflow-wrap: anywhere }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.05rem }
p { margin: .5rem 0 }
.soft { color: var(--soft) }
.lead { margin-top: 1.25rem; font-size: 1.15rem }
ul { margin: 0; padding-left: 1.2rem }
li { margin: .5rem 0 }
a { color: var(--accent) }
code, pre { font: .9em/1.6 ui-monospace, Menlo, Consolas, monospace; background: var(--box); border-radius: .35rem }
code { padding: .1em .35em; overflow-wrap: anywhere; box-decoration-break: clone; -webkit-box-decoration-break: clone }
pre { padding: .9rem 1rem; overflow-x: auto; border: 1px solid var(--line) }
pre code { padding: 0; background: none; overflow-wrap: normal }
table { width: 100%; margin-top: 1.25rem; border-collapse: collapse }
td { padding: .55rem .75rem .55rem 0; border-top: 1px solid var(--line); vertical-align: top }
@media (max-width: 36rem) {
  tr { display: block; padding: .55rem 0; border-top: 1px solid var(--line) }
  td { padding: 0 .5rem 0 0; border: 0 }
  td:last-child { display: block }
}
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem }
`

const styleHash = createHash('sha256').update(style).digest('base64')

const headers = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  // The same address returns HTML, JSON or text.
  vary: 'accept',
}

/** `body` is HTML, `title` is text. */
export function htmlPage(title: string, body: string): WebPage {
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title>`
  return {
    headers: { ...headers, 'content-type': 'text/html; charset=utf-8' },
    body: `<!doctype html>\n<html lang="en"><head>${head}<style>${style}</style></head><body><main>\n${body}\n</main></body></html>\n`,
  }
}

export function jsonPage(value: object): WebPage {
  return { headers: { ...headers, 'content-type': 'application/json' }, body: `${JSON.stringify(value, null, 2)}\n` }
}

export function textPage(body: string): WebPage {
  return { headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body }
}

/** Whether a client asks for HTML, as browsers do. Command-line clients accept anything. */
export function prefersHtml(accept: string | undefined): boolean {
  return accept !== undefined && /\btext\/html\b/i.test(accept)
}

/** Whether a client asks for JSON. Browsers ask for HTML. */
export function prefersJson(accept: string | undefined): boolean {
  return accept !== undefined && /\bjson\b/i.test(accept) && !prefersHtml(accept)
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

/** Converts text to HTML. Text in backticks becomes code. */
export function toHtml(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}
