/** Parses an id on the command line: accepted in any case, stored in lower case. */
export function parseId(text: string): string {
  return text.toLowerCase()
}
