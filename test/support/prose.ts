/** Finds long sentences and long lines in Markdown. Tables, code, headings and link definitions are exempt. */

const wordsMax = 25
const columnsMax = 120

/** Prose as one paragraph or list item: its first line, counted from 1, where it begins in the page, and its masked text. */
interface Block {
  readonly line: number
  readonly start: number
  text: string
}

const crossOut = (part: string) => part.replaceAll(/\S| (?! *$)/gm, 'x')

/** Returns the page with code and the targets of links crossed out, so that neither has spaces. Every character keeps its place. */
function masked(page: string): string {
  return page
    .replaceAll(/^( *)```.*?^ *```$/gms, (fence) => fence.replaceAll(/[^\n]/g, ' '))
    .replaceAll(/(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n)(?:.|\n))+?(?<!`)\1(?!`)/g, crossOut)
    .replaceAll(/(?<=\])\([^()\s]*\)/g, crossOut)
}

const marker = /^\s*(?:[-*+] |\d+\. |> )/
const isExempt = (line: string) => /^\s*(?:\||#{1,6} |\[[^\]]+\]: |<)/.test(line)

function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = []
  let open: Block | undefined
  let start = 0
  for (const [index, line] of masked(page).split('\n').entries()) {
    const isProse = line.trim() !== '' && !isExempt(line)
    if (isProse && open !== undefined && !marker.test(line)) open.text += `\n${line}`
    else {
      open = isProse ? { line: index + 1, start, text: line } : undefined
      if (open !== undefined) blocks.push(open)
    }
    start += line.length + 1
  }
  return blocks
}

/** Returns each sentence with more than 25 words: where it is in the page, its line, and its words. A colon or semicolon ends one too. */
export function longSentences(page: string): readonly { line: number; start: number; end: number; words: number }[] {
  const found: { line: number; start: number; end: number; words: number }[] = []
  for (const block of blocksOf(page)) {
    const from = marker.exec(block.text)?.[0].length ?? 0
    const text = ' '.repeat(from) + block.text.slice(from)
    for (const { 0: sentence, index } of text.matchAll(/\S(?:.|\n)*?(?:[.!?:;][)"”*_]*(?=\s)|$)/g)) {
      const words = sentence.trim().split(/\s+/).length
      const line = block.line + text.slice(0, index).split('\n').length - 1
      if (words > wordsMax)
        found.push({ line, start: block.start + index, end: block.start + index + sentence.trimEnd().length, words })
    }
  }
  return found
}

/** Returns the numbers of the lines with more than 120 characters that could be broken: not within code or a link. */
export function longLines(page: string): readonly number[] {
  const whole = masked(page).replaceAll(/!?\[(?:(?!\n[ \t]*\n)[^[\]])*\]x+/g, crossOut)
  return whole.split('\n').flatMap((line, index) => {
    const from = marker.exec(line)?.[0].length ?? /^ */.exec(line)?.[0].length ?? 0
    const isLong =
      line.length > columnsMax &&
      !isExempt(line) &&
      line
        .slice(from, columnsMax + 1)
        .trimEnd()
        .includes(' ')
    return isLong ? [index + 1] : []
  })
}
