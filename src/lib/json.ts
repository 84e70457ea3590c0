export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** Returns the parsed value, or undefined if the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns where and why a text is not valid JSON, from the error of JSON.parse. */
export function explainJsonError(error: unknown): string {
  const [message = ''] = (error instanceof Error ? error.message : String(error)).split(/ is not valid JSON$/)
  const located = message.replace(/ in JSON at position \d+ \(line (\d+) column (\d+)\)$/, ' at line $1, column $2')
  return located.charAt(0).toLowerCase() + located.slice(1)
}
