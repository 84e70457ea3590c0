/** The pages behind the `type` of errors: `{base_url}/errors/<code>`, and `/errors`, which lists them. */
import { errorTexts } from '#error-texts.ts'
import { type ErrorCode, errorTable } from '#errors.ts'
import { escapeHtml, htmlPage, jsonPage, prefersHtml, prefersJson, textPage, toHtml, type WebPage } from './html.ts'

const codes = Object.keys(errorTable) as ErrorCode[]

/** Returns the page at a path, or undefined if the path is not one of these pages. */
export function findErrorPage(path: string, accept: string | undefined): WebPage | undefined {
  // Links are relative to the last slash of the address.
  if (path === '/errors') return listPage('errors/', accept)
  if (path === '/errors/') return listPage('', accept)
  const code = codes.find((known) => path === `/errors/${known}`)
  return code && errorPage(code, accept)
}

function errorPage(code: ErrorCode, accept: string | undefined): WebPage {
  const { status, title, retry } = errorTable[code]
  const { meaning, remedies } = errorTexts[code]
  if (prefersJson(accept)) return jsonPage(describe(code))
  const statusLine = `HTTP ${status} ${title}`
  const again = retry ? 'The same request may succeed later.' : 'Sending the same request again does not help.'
  if (!prefersHtml(accept)) {
    const advice = remedies.map((remedy) => `- ${remedy}\n`).join('')
    return textPage(`${code}: ${statusLine}. ${again}\n\n${meaning}\n\nWhat to do:\n${advice}`)
  }
  return htmlPage(
    `${code} – Inlet`,
    `<p class="soft">Inlet error</p>
<h1>${code}</h1>
<p class="soft">${escapeHtml(statusLine)}. ${again}</p>
<p class="lead">${toHtml(meaning)}</p>
<h2>What to do</h2>
<ul>
${remedies.map((remedy) => `<li>${toHtml(remedy)}</li>`).join('\n')}
</ul>
<footer>${toHtml('The field `detail` of the response says what was wrong with your request.')} <a href="../errors">All errors</a></footer>`,
  )
}

function listPage(base: string, accept: string | undefined): WebPage {
  if (prefersJson(accept)) return jsonPage({ errors: codes.map(describe) })
  if (!prefersHtml(accept)) {
    const charsMax = Math.max(...codes.map(({ length }) => length))
    const lines = codes.map((code) => `${errorTable[code].status}  ${code.padEnd(charsMax)}  ${errorTable[code].title}\n`)
    return textPage(`${lines.join('')}\nGET /errors/<code> says what one means and what to do.\n`)
  }
  const rows = codes.map((code) => {
    const link = `<a href="${base}${code}">${code}</a>`
    return `<tr><td>${errorTable[code].status}</td><td>${link}</td><td>${toHtml(errorTexts[code].meaning)}</td></tr>`
  })
  return htmlPage(
    'Errors – Inlet',
    `<h1>Errors</h1>
<p class="lead">Every error of Inlet is a JSON object (RFC 7807) whose field <code>error</code> has one of these codes.</p>
<table>
${rows.join('\n')}
</table>`,
  )
}

function describe(code: ErrorCode) {
  return { error: code, ...errorTable[code], ...errorTexts[code] }
}
