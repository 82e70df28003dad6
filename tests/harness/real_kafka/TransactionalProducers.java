import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's transactional producers, any number of them in one process. A line of standard input is a call: the number of
 * the producer, the call and its arguments. A line of standard output is its outcome: empty, or the class of the
 * exception and of its causes, and what it says.
 */
public class TransactionalProducers {
    private static final Map<String, KafkaProducer<String, String>> PRODUCERS = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String answer = "";
            try {
                call(words);
            } catch (ExecutionException error) {
                answer = described(error.getCause());
            } catch (Exception error) {
                answer = described(error);
            }
            System.out.println(answer);
        }
        PRODUCERS.values().forEach(producer -> producer.close(Duration.ZERO));
    }

    private static void call(String[] words) throws Exception {
        KafkaProducer<String, String> producer = PRODUCERS.get(words[0]);
        switch (words[1]) {
            case "new":
                PRODUCERS.put(words[0], new KafkaProducer<>(
                    Map.of(
                        "bootstrap.servers", words[2],
                        "transactional.id", words[3],
                        "max.block.ms", "30000",
                        "request.timeout.ms", "10000",
                        "delivery.timeout.ms", "30000"),
                    new StringSerializer(), new StringSerializer()));
                break;
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "send":
                producer.send(new ProducerRecord<>(words[2], words[3])).get();
                break;
            case "send_offsets":
                producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(words[2], 0), new OffsetAndMetadata(Long.parseLong(words[3]))),
                    new ConsumerGroupMetadata(words[4]));
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.abortTransaction();
                break;
            case "close":
                PRODUCERS.remove(words[0]).close(Duration.ZERO);
                break;
            default:
                throw new IllegalArgumentException(words[1]);
        }
    }

    private static String described(Throwable error) {
        StringBuilder names = new StringBuilder();
        for (Throwable each = error; each != null; each = each.getCause()) {
            names.append(each.getClass().getSimpleName()).append(' ');
        }
        return (names + ": " + error.getMessage()).replace('\n', ' ');
    }
}
