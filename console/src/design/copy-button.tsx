import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button, IconButton } from './button.tsx'

const shownMs = 1500

/** Copies `text`, and says so for a moment. */
export function CopyButton({
  text,
  label = 'Copy',
  wordless = false,
}: {
  readonly text: string
  readonly label?: string
  readonly wordless?: boolean
}) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), shownMs)
    return () => clearTimeout(timer)
  }, [state])
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    )
  }
  const icon = state === 'copied' ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />
  const word = state === 'copied' ? 'Copied' : state === 'failed' ? 'Press Ctrl+C' : label
  if (wordless) {
    return (
      <IconButton label={word} look="quiet" size="small" onClick={copy}>
        {icon}
      </IconButton>
    )
  }
  return (
    <Button size="small" icon={icon} onClick={copy}>
      <span aria-live="polite">{word}</span>
    </Button>
  )
}
