/** Whether the text is an integer as people write one. `Number` alone also accepts the empty text, `0x10`, `1e2`, `+5`, `010` and spaces. */
export function isDecimalInteger(text: string): boolean {
  return /^(0|-?[1-9]\d*)$/.test(text)
}
